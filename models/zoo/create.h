// Makes a model from its config. The one place that knows all architectures.
#ifndef PLINTH_MODELS_ZOO_CREATE_H_
#define PLINTH_MODELS_ZOO_CREATE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "plinth/config/model.pb.h"
#include "plinth/models/nn/model.h"

namespace plinth::models {

// A model whose parameters have names and shapes but no values yet: Initialize
// (models/nn/model.h) or LoadParameters (models/loading) gives them. Errors: ResolveModel's.
absl::StatusOr<std::unique_ptr<LanguageModel>> CreateModel(const config::ModelConfig& config);

}  // namespace plinth::models

#endif  // PLINTH_MODELS_ZOO_CREATE_H_
