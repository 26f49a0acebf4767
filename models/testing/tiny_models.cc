#include "plinth/models/testing/tiny_models.h"

#include <utility>

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/rng.h"
#include "plinth/hardware/device/tensor.h"
#include "plinth/models/zoo/create.h"

namespace plinth::models::testing {

config::ModelConfig TinyConfig(config::Architecture architecture) {
  config::ModelConfig config;
  config.set_architecture(architecture);
  config.set_vocab_size(37);
  config.set_layers(3);
  config.set_model_dim(20);
  config.set_max_positions(96);
  if (architecture == config::GPT2) {
    config.set_heads(5);
    config.set_ffn_dim(33);
  } else {
    config.set_heads(4);
    config.set_kv_heads(2);
    config.set_head_dim(6);
    config.set_ffn_dim(27);
  }
  return config;
}

std::unique_ptr<LanguageModel> TinyModel(config::Architecture architecture, uint64_t seed,
                                         CachingAllocator& allocator, Stream& stream) {
  auto created = CreateModel(TinyConfig(architecture));
  CHECK_OK(created);
  std::vector<float> values;
  for (Parameter* p : (*created)->parameters()) {
    const uint64_t key = RngKey(seed, p->name());
    const float center = p->init().kind == Init::Kind::kOnes ? 1 : 0;
    values.resize(static_cast<size_t>(p->shape().elements()));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = center + 0.2f * static_cast<float>(RandomNormal(key, 0, i));
    }
    Tensor value = Tensor::New(allocator, DType::kF32, p->shape());
    stream.CopyIn(value.view().data, values.data(), value.view().bytes());
    p->set_value(std::move(value));
  }
  CHECK_OK(stream.Synchronize());
  return *std::move(created);
}

std::vector<int32_t> RandomIds(int64_t count, int64_t vocab_size, uint64_t seed) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = RandomBits(seed, 7, static_cast<uint64_t>(i));
    ids.push_back(static_cast<int32_t>(bits % static_cast<uint64_t>(vocab_size)));
  }
  return ids;
}

}  // namespace plinth::models::testing
