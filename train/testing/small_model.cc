#include "plinth/train/testing/small_model.h"

#include <vector>

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/rng.h"
#include "plinth/models/zoo/create.h"

namespace plinth::train::testing {

config::ModelConfig SmallConfig(config::Architecture architecture, bool tied) {
  config::ModelConfig config;
  config.set_architecture(architecture);
  config.set_vocab_size(11);
  config.set_layers(2);
  config.set_model_dim(8);
  config.set_heads(2);
  if (architecture == config::LLAMA) config.set_kv_heads(1);
  config.set_ffn_dim(12);
  config.set_max_positions(16);
  config.set_tie_embeddings(tied);
  return config;
}

std::unique_ptr<models::LanguageModel> SmallModel(config::Architecture architecture, bool tied,
                                                  CachingAllocator& allocator, Stream& stream) {
  auto model = models::CreateModel(SmallConfig(architecture, tied));
  CHECK_OK(model);
  for (models::Parameter* parameter : (*model)->parameters()) {
    Tensor value = Tensor::New(allocator, DType::kF32, parameter->shape());
    std::vector<float> elements(static_cast<size_t>(value.elements()));
    const uint64_t key = RngKey(7, parameter->name());
    const bool gain = parameter->init().kind == models::Init::Kind::kOnes;
    for (size_t i = 0; i < elements.size(); ++i) {
      elements[i] = static_cast<float>(RandomUniform(key, 0, i) - 0.5) + (gain ? 1.0f : 0.0f);
    }
    stream.CopyIn(value.view().data, elements.data(), value.view().bytes());
    parameter->set_value(value);
  }
  CHECK_OK(stream.Synchronize());
  return *std::move(model);
}

}  // namespace plinth::train::testing
