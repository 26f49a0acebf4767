// plan: what a model or a run costs, before it is started.
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plinth/config/loader/command_line.h"
#include "plinth/config/loader/loader.h"
#include "plinth/hardware/base/program.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/tools/plan/known_models.h"
#include "plinth/tools/plan/report.h"

ABSL_FLAG(std::string, count, "", "a published model to count instead of a config");
ABSL_FLAG(bool, json, false, "print one JSON object (plinth.plan.v1) instead of a table");

namespace plinth::tools {
namespace {

absl::StatusOr<Plan> MakePlan(const config::ConfigFlags& flags) {
  const std::string count = absl::GetFlag(FLAGS_count);
  if (count.empty() == flags.config.empty()) {
    return absl::InvalidArgumentError("give either --config=FILE or --count=MODEL");
  }
  if (!count.empty()) {
    if (!flags.settings.empty()) {
      return absl::InvalidArgumentError("--set changes a --config, not a --count");
    }
    ASSIGN_OR_RETURN(const config::ModelConfig model, KnownModel(count));
    return PlanModel(count, model);
  }
  ASSIGN_OR_RETURN(const config::RunConfig config,
                   config::LoadRunConfig(flags.config, flags.settings));
  RETURN_IF_ERROR(config::CheckValid(config, config::Purpose::kPlan));
  return PlanRun(config);
}

absl::StatusOr<std::string> Report(const config::ConfigFlags& flags) {
  ASSIGN_OR_RETURN(const Plan plan, MakePlan(flags));
  return absl::GetFlag(FLAGS_json) ? ToJson(plan) : ToTable(plan);
}

int Main(int argc, char** argv) {
  SetProgramHelp(absl::StrCat(
      "says what a run costs: parameters, FLOPs per token, memory of each rank.\n\n"
      "  plan --config=FILE.textproto [--set path=value ...] [--json]\n"
      "  plan --count=MODEL           MODEL: ",
      absl::StrJoin(KnownModelNames(), ", "),
      "\n\nMemory is that of the training step and the serving engine themselves, run on a device "
      "that\nonly counts."));
  const auto flags = config::TakeConfigFlags(argc, argv);
  ParseFlagsOnly("plan", argc, argv);
  return PrintReport("plan", flags.ok() ? Report(*flags) : flags.status());
}

}  // namespace
}  // namespace plinth::tools

int main(int argc, char** argv) { return plinth::tools::Main(argc, argv); }
