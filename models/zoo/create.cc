#include "plinth/models/zoo/create.h"

#include "plinth/hardware/base/status_macros.h"
#include "plinth/models/gpt2/gpt2.h"
#include "plinth/models/llama/llama.h"
#include "plinth/models/zoo/resolve.h"

namespace plinth::models {

absl::StatusOr<std::unique_ptr<LanguageModel>> CreateModel(const config::ModelConfig& config) {
  ASSIGN_OR_RETURN(const ModelSpec spec, ResolveModel(config));
  const float norm_eps = static_cast<float>(spec.norm_eps);
  if (spec.architecture == config::GPT2) {
    return std::make_unique<Gpt2>(Gpt2Options{.dims = spec.dims, .norm_eps = norm_eps});
  }
  return std::make_unique<Llama>(LlamaOptions{.dims = spec.dims,
                                              .norm_eps = norm_eps,
                                              .rope_theta = spec.rope_theta,
                                              .tie_embeddings = spec.tie_embeddings});
}

}  // namespace plinth::models
