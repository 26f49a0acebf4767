// From a config's model section to sizes that are complete and consistent.
#ifndef PLINTH_MODELS_ZOO_RESOLVE_H_
#define PLINTH_MODELS_ZOO_RESOLVE_H_

#include "absl/status/statusor.h"
#include "plinth/config/model.pb.h"
#include "plinth/models/nn/model.h"

namespace plinth::models {

struct ModelSpec {
  config::Architecture architecture = config::ARCHITECTURE_UNSPECIFIED;
  ModelDims dims;
  double norm_eps = 0;
  double rope_theta = 0;  // LLAMA
  bool tie_embeddings = false;
};

// Defaults and rules are those of config/loader. kInvalidArgument lists every violation, or
// states that the sizes together would overflow the arithmetic on parameters and bytes.
absl::StatusOr<ModelSpec> ResolveModel(const config::ModelConfig& config);

}  // namespace plinth::models

#endif  // PLINTH_MODELS_ZOO_RESOLVE_H_
