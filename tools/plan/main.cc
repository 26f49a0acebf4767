// plan: what a model or a run costs, before it is started.
#include <cstdio>
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
  const absl::StatusOr<Plan> plan = flags.ok() ? MakePlan(*flags) : flags.status();
  if (!plan.ok()) {
    std::fprintf(stderr, "plan: %s\n", std::string(plan.status().message()).c_str());
    return 1;
  }
  const std::string text = absl::GetFlag(FLAGS_json) ? ToJson(*plan) : ToTable(*plan);
  const bool written = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  if (!written) std::fprintf(stderr, "plan: cannot write to stdout\n");
  return written ? 0 : 1;
}

}  // namespace
}  // namespace plinth::tools

int main(int argc, char** argv) { return plinth::tools::Main(argc, argv); }
