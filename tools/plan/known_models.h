// Published models by name, so that their cost can be looked up without a config file.
#ifndef PLINTH_TOOLS_PLAN_KNOWN_MODELS_H_
#define PLINTH_TOOLS_PLAN_KNOWN_MODELS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "plinth/config/model.pb.h"

namespace plinth::tools {

// In order of size.
std::vector<std::string> KnownModelNames();
// kNotFound lists the names.
absl::StatusOr<config::ModelConfig> KnownModel(std::string_view name);

}  // namespace plinth::tools

#endif  // PLINTH_TOOLS_PLAN_KNOWN_MODELS_H_
