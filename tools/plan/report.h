// What a run will cost, as a table and as JSON.
#ifndef PLINTH_TOOLS_PLAN_REPORT_H_
#define PLINTH_TOOLS_PLAN_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "plinth/config/model.pb.h"
#include "plinth/config/run.pb.h"
#include "plinth/models/cost/cost.h"
#include "plinth/tools/plan/memory.h"

namespace plinth::tools {

struct Plan {
  std::string name;
  models::ParameterCount parameters;
  int64_t sequence_length = 0;  // what FLOPs are counted for
  double train_flops_per_token = 0;
  double forward_flops_per_token = 0;
  int64_t kv_bytes_per_token = 0;  // bf16
  // Of a run; absent for a model alone.
  std::optional<config::RunConfig> config;
  std::optional<TrainMemory> train;
  std::optional<ServeMemory> serve;
};

// Counts for sequences of the model's longest length. Errors: those of models::ResolveModel.
absl::StatusOr<Plan> PlanModel(const std::string& name, const config::ModelConfig& model);
// Counts and memory. Expects filled defaults; training is left out when the config says nothing
// of its sizes.
absl::StatusOr<Plan> PlanRun(const config::RunConfig& config);

std::string ToTable(const Plan& plan);
// One object, schema plinth.plan.v1.
std::string ToJson(const Plan& plan);

}  // namespace plinth::tools

#endif  // PLINTH_TOOLS_PLAN_REPORT_H_
