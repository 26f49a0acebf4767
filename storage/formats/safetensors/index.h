// The index of a sharded model: model.safetensors.index.json.
#ifndef PLINTH_STORAGE_FORMATS_SAFETENSORS_INDEX_H_
#define PLINTH_STORAGE_FORMATS_SAFETENSORS_INDEX_H_

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace plinth::storage {

// {"metadata": {...}, "weight_map": {"<tensor>": "<file in the same directory>", ...}}
// Returns the weight map. "metadata" may hold anything; other keys are refused.
// Errors: kInvalidArgument, naming `path`.
absl::StatusOr<std::map<std::string, std::string>> ParseSafetensorsIndex(std::string_view json,
                                                                         std::string_view path);

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_FORMATS_SAFETENSORS_INDEX_H_
