// Reads, completes and checks the configuration of a run.
#ifndef PLINTH_CONFIG_LOADER_LOADER_H_
#define PLINTH_CONFIG_LOADER_LOADER_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/config/model.pb.h"
#include "plinth/config/run.pb.h"

namespace plinth::config {

// What a config is about to be used for: it decides which fields are required.
enum class Purpose { kPlan, kTrain, kServe };

// Reads a textproto file, applies `settings` ("train.steps=100") in order, fills defaults.
// Errors name the file, line and column, or the setting; an unknown field is an error that
// lists the known ones.
absl::StatusOr<RunConfig> LoadRunConfig(const std::string& path,
                                        const std::vector<std::string>& settings);
// The same from text; `origin` stands for the file name in messages.
absl::StatusOr<RunConfig> ParseRunConfig(const std::string& text, const std::string& origin,
                                         const std::vector<std::string>& settings);

// Sets one field by path, "model.layers=12". Enums by name, booleans true or false.
absl::Status ApplySetting(const std::string& setting, RunConfig& config);

// Gives every field that is 0 or empty the default its comment states. Idempotent.
void FillDefaults(RunConfig& config);
// The same for a section alone. serve.kv_tokens stays 0, as it depends on the model.
void FillDefaults(ModelConfig& model);
void FillDefaults(AdamWConfig& adamw);
void FillDefaults(ServeConfig& serve);

// Every violation of the ranges that the comments in config/*.proto state, each as
// "path: what is wrong". Empty = valid. Expects filled defaults.
std::vector<std::string> Validate(const RunConfig& config, Purpose purpose);
// Those of the model section alone.
std::vector<std::string> Validate(const ModelConfig& model);
// OK, or kInvalidArgument with all violations in one message.
absl::Status CheckValid(const RunConfig& config, Purpose purpose);

// The config as text that ParseRunConfig reads back unchanged.
std::string ToText(const RunConfig& config);

}  // namespace plinth::config

#endif  // PLINTH_CONFIG_LOADER_LOADER_H_
