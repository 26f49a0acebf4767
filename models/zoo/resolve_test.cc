#include "plinth/models/zoo/resolve.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/models/zoo/create.h"

namespace plinth::models {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

config::ModelConfig Valid(config::Architecture architecture) {
  config::ModelConfig config;
  config.set_architecture(architecture);
  config.set_vocab_size(300);
  config.set_layers(2);
  config.set_model_dim(48);
  config.set_heads(6);
  config.set_max_positions(32);
  if (architecture == config::LLAMA) config.set_ffn_dim(100);
  return config;
}

TEST(ResolveModelTest, FillsInDefaults) {
  ASSERT_OK_AND_ASSIGN(const ModelSpec gpt2, ResolveModel(Valid(config::GPT2)));
  EXPECT_EQ(gpt2.dims.kv_heads, 6);
  EXPECT_EQ(gpt2.dims.head_dim, 8);
  EXPECT_EQ(gpt2.dims.ffn_dim, 192);
  EXPECT_EQ(gpt2.norm_eps, 1e-5);
  EXPECT_TRUE(gpt2.tie_embeddings);
  ASSERT_OK_AND_ASSIGN(const ModelSpec llama, ResolveModel(Valid(config::LLAMA)));
  EXPECT_EQ(llama.rope_theta, 10000);
  EXPECT_FALSE(llama.tie_embeddings);
}

TEST(ResolveModelTest, EachBadFieldIsNamedWithItsValue) {
  using Edit = std::function<void(config::ModelConfig&)>;
  const std::vector<std::pair<Edit, std::string>> cases = {
      {[](auto& c) { c.set_vocab_size(0); }, "model.vocab_size: must be at least 1, is 0"},
      {[](auto& c) { c.set_layers(-3); }, "model.layers: must be at least 1, is -3"},
      {[](auto& c) { c.set_model_dim(50); },
       "multiple of model.heads (6), is 50; nearest: 48 or 54"},
      {[](auto& c) { c.set_heads(0); }, "model.heads: must be at least 1"},
      {[](auto& c) { c.set_kv_heads(4); }, "multiple of model.kv_heads (4), is 6"},
      {[](auto& c) { c.set_kv_heads(-1); }, "model.kv_heads"},
      {[](auto& c) { c.set_head_dim(7); }, "model.head_dim: must be a multiple of 2"},
      {[](auto& c) { c.set_ffn_dim(0); }, "model.ffn_dim"},
      {[](auto& c) { c.set_max_positions(0); }, "model.max_positions"},
      {[](auto& c) { c.set_norm_eps(-1); }, "model.norm_eps: must be positive, is -1"},
      {[](auto& c) { c.set_norm_eps(std::numeric_limits<double>::quiet_NaN()); }, "norm_eps"},
      {[](auto& c) { c.set_rope_theta(-1); }, "model.rope_theta"},
      {[](auto& c) { c.set_vocab_size(int64_t{1} << 62); }, "model.vocab_size: must be at most"},
      {[](auto& c) { c.set_architecture(config::ARCHITECTURE_UNSPECIFIED); },
       "model.architecture: is required"},
      {[](auto& c) { c.set_architecture(static_cast<config::Architecture>(77)); },
       "model.architecture"},
  };
  for (const auto& [edit, message] : cases) {
    config::ModelConfig config = Valid(config::LLAMA);
    edit(config);
    EXPECT_THAT(ResolveModel(config),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
    EXPECT_THAT(CreateModel(config), StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(ResolveModelTest, RefusesAModelWhoseElementCountWouldOverflow) {
  config::ModelConfig config = Valid(config::LLAMA);
  config.set_model_dim(int64_t{1} << 30);
  config.set_head_dim(1 << 20);
  config.set_layers(4096);  // the most there are
  EXPECT_THAT(ResolveModel(config), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("parameters, must be at most")));
  config.set_model_dim(std::numeric_limits<int64_t>::max());
  config.set_architecture(config::GPT2);
  config.set_ffn_dim(0);
  EXPECT_THAT(ResolveModel(config),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("model.model_dim")));
}

TEST(ResolveModelTest, ListsAllViolations) {
  config::ModelConfig config;
  EXPECT_THAT(ResolveModel(config),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("architecture"), HasSubstr("vocab_size"),
                             HasSubstr("layers"), HasSubstr("model_dim"), HasSubstr("heads"),
                             HasSubstr("ffn_dim"), HasSubstr("max_positions"))));
}

// Checkpoints depend on these names and on their order.
TEST(CreateModelTest, ParameterNamesArePinned) {
  config::ModelConfig config = Valid(config::GPT2);
  config.set_layers(1);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<LanguageModel> gpt2, CreateModel(config));
  std::vector<std::string> names;
  for (const Parameter* p : gpt2->parameters()) names.push_back(p->name());
  EXPECT_THAT(
      names,
      ::testing::ElementsAre(
          "token_embedding.weight", "position_embedding.weight", "layers.0.attention_norm.weight",
          "layers.0.attention_norm.bias", "layers.0.attention.q.weight",
          "layers.0.attention.q.bias", "layers.0.attention.k.weight", "layers.0.attention.k.bias",
          "layers.0.attention.v.weight", "layers.0.attention.v.bias",
          "layers.0.attention.output.weight", "layers.0.attention.output.bias",
          "layers.0.ffn_norm.weight", "layers.0.ffn_norm.bias", "layers.0.ffn.up.weight",
          "layers.0.ffn.up.bias", "layers.0.ffn.down.weight", "layers.0.ffn.down.bias",
          "final_norm.weight", "final_norm.bias"));
  config = Valid(config::LLAMA);
  config.set_layers(1);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<LanguageModel> llama, CreateModel(config));
  names.clear();
  for (const Parameter* p : llama->parameters()) names.push_back(p->name());
  EXPECT_THAT(names,
              ::testing::ElementsAre(
                  "token_embedding.weight", "layers.0.attention_norm.weight",
                  "layers.0.attention.q.weight", "layers.0.attention.k.weight",
                  "layers.0.attention.v.weight", "layers.0.attention.output.weight",
                  "layers.0.ffn_norm.weight", "layers.0.ffn.gate.weight", "layers.0.ffn.up.weight",
                  "layers.0.ffn.down.weight", "final_norm.weight", "head.weight"));
}

TEST(CreateModelTest, OnlyMatricesDecay) {
  for (const config::Architecture architecture : {config::GPT2, config::LLAMA}) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<LanguageModel> model,
                         CreateModel(Valid(architecture)));
    for (const Parameter* p : model->parameters()) {
      EXPECT_EQ(p->decays(), p->shape().rank() == 2) << p->name();
    }
  }
}

}  // namespace
}  // namespace plinth::models
