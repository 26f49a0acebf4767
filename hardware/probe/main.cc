// bazel run //hardware:probe [-- --json] [-- --root=/copy/of/another/machine]

#include <string>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "plinth/hardware/base/program.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/probe/format.h"
#include "plinth/hardware/probe/probe.h"

ABSL_FLAG(bool, json, false, "Print one JSON object (plinth.machine.v1) instead of a table.");
ABSL_FLAG(std::string, root, "/",
          "Read /proc and /sys below this directory, for example a copy from another machine.");

namespace plinth::probe {
namespace {

absl::StatusOr<std::string> Run() {
  ASSIGN_OR_RETURN(const MachineReport report, Probe({.root = absl::GetFlag(FLAGS_root)}));
  return absl::GetFlag(FLAGS_json) ? ToJson(report) + "\n" : ToTable(report);
}

}  // namespace
}  // namespace plinth::probe

int main(int argc, char** argv) {
  plinth::SetProgramHelp(
      "Shows what this machine is and how much of it a process may use.\n"
      "  bazel run //hardware:probe\n"
      "  bazel run //hardware:probe -- --json");
  plinth::ParseFlagsOnly("probe", argc, argv);
  return plinth::PrintReport("probe", plinth::probe::Run());
}
