#include "plinth/models/cost/cost.h"

#include <memory>

#include "gtest/gtest.h"
#include "plinth/config/model.pb.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/models/zoo/create.h"

namespace plinth::models {
namespace {

struct Sizes {
  config::Architecture architecture;
  int64_t vocab, layers, dim, heads, kv_heads, ffn, positions;
  bool tied = false;
  int64_t head_dim = 0;
};

config::ModelConfig Config(const Sizes& s) {
  config::ModelConfig config;
  config.set_architecture(s.architecture);
  config.set_vocab_size(s.vocab);
  config.set_layers(s.layers);
  config.set_model_dim(s.dim);
  config.set_heads(s.heads);
  config.set_kv_heads(s.kv_heads);
  config.set_ffn_dim(s.ffn);
  config.set_max_positions(s.positions);
  config.set_tie_embeddings(s.tied);
  config.set_head_dim(s.head_dim);
  return config;
}

ModelSpec Spec(const Sizes& sizes) {
  absl::StatusOr<ModelSpec> spec = ResolveModel(Config(sizes));
  CHECK_OK(spec);
  return *spec;
}

const Sizes kGpt2{config::GPT2, 50257, 12, 768, 12, 0, 0, 1024};
const Sizes kLlama2{config::LLAMA, 32000, 32, 4096, 32, 0, 11008, 4096};
const Sizes kLlama3{config::LLAMA, 128256, 32, 4096, 32, 8, 14336, 8192};

// Published totals of the released weights.
TEST(CountParametersTest, MatchesPublishedModels) {
  EXPECT_EQ(CountParameters(Spec(kGpt2)).total(), 124'439'808);
  EXPECT_EQ(CountParameters(Spec(kLlama2)).total(), 6'738'415'616);
  EXPECT_EQ(CountParameters(Spec(kLlama3)).total(), 8'030'261'248);
}

// The models themselves are the truth; unequal head_dim, grouped heads, tied and not.
TEST(CountParametersTest, MatchesTheModelsParameters) {
  for (const Sizes& sizes : {kGpt2, kLlama3, Sizes{config::GPT2, 7, 3, 12, 4, 0, 5, 9},
                             Sizes{config::LLAMA, 13, 2, 10, 5, 1, 3, 4, true, 6},
                             Sizes{config::LLAMA, 13, 1, 10, 5, 5, 3, 4, false, 2}}) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<LanguageModel> model, CreateModel(Config(sizes)));
    int64_t elements = 0;
    for (const Parameter* p : model->parameters()) elements += p->shape().elements();
    EXPECT_EQ(CountParameters(Spec(sizes)).total(), elements);
  }
}

TEST(CountFlopsTest, ForwardIsTwicePerMatrixWeightPlusAttention) {
  const ModelSpec spec = Spec({config::LLAMA, 13, 2, 10, 5, 1, 3, 64, false, 2});
  // Block: q 10x10, k and v 2x10, output 10x10, three 3x10.
  const double matrices = 2 * (100 + 20 + 20 + 100 + 90);
  const ForwardFlops flops = CountForwardFlops(spec, 3, 4, 1);
  EXPECT_EQ(flops.matrices, 2 * 3 * matrices);
  // Three tokens read 5, 6 and 7 keys of 10 query elements in two layers.
  EXPECT_EQ(flops.attention, 4.0 * (5 + 6 + 7) * 10 * 2);
  EXPECT_EQ(flops.head, 2.0 * 13 * 10);
}

TEST(CountFlopsTest, ChunksAddUp) {
  const ModelSpec spec = Spec(kGpt2);
  double chunks = 0;
  for (int64_t past = 0; past < 96; past += 32) {
    chunks += CountForwardFlops(spec, 32, past, 32).total();
  }
  EXPECT_DOUBLE_EQ(chunks, CountForwardFlops(spec, 96, 0, 96).total());
}

// Six FLOPs per weight that a token meets is the usual estimate; attention comes on top.
TEST(CountFlopsTest, TrainingApproachesSixPerWeightForShortSequences) {
  const ModelSpec spec = Spec(kGpt2);
  const ParameterCount count = CountParameters(spec);
  const double met = static_cast<double>(count.layers) + 50257.0 * 768.0;
  const double per_weight = TrainFlopsPerToken(spec, 1) / met;
  EXPECT_LT(per_weight, 6.0);
  EXPECT_GT(per_weight, 5.98);
  EXPECT_GT(TrainFlopsPerToken(spec, 1024), TrainFlopsPerToken(spec, 64));
}

TEST(KvBytesTest, GroupedHeadsShrinkTheCache) {
  EXPECT_EQ(KvBytesPerToken(Spec(kLlama2), 2), 2 * 32 * 4096 * 2);
  EXPECT_EQ(KvBytesPerToken(Spec(kLlama3), 2), 2 * 32 * 1024 * 2);
}

TEST(ActivationBytesTest, RecomputingKeepsOneBlock) {
  const ModelSpec spec = Spec(kGpt2);
  const ActivationBytes bytes = CountActivationBytes(spec, 256);
  EXPECT_EQ(bytes.logits, 256 * 50257 * 4);
  EXPECT_EQ(bytes.kept(12) - bytes.recomputed(), 11 * bytes.per_block);
  EXPECT_EQ(CountActivationBytes(spec, 512).per_block, 2 * bytes.per_block);
}

}  // namespace
}  // namespace plinth::models
