// bazel run //hardware:probe [-- --json] [-- --root=/copy/of/another/machine]

#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "plinth/hardware/base/program.h"
#include "plinth/hardware/probe/format.h"
#include "plinth/hardware/probe/probe.h"

ABSL_FLAG(bool, json, false, "Print one JSON object (plinth.machine.v1) instead of a table.");
ABSL_FLAG(std::string, root, "/",
          "Read /proc and /sys below this directory, for example a copy from another machine.");

int main(int argc, char** argv) {
  plinth::SetProgramHelp(
      "Shows what this machine is and how much of it a process may use.\n"
      "  bazel run //hardware:probe\n"
      "  bazel run //hardware:probe -- --json");
  plinth::ParseFlagsOnly("probe", argc, argv);
  const absl::StatusOr<plinth::probe::MachineReport> report =
      plinth::probe::Probe({.root = absl::GetFlag(FLAGS_root)});
  if (!report.ok()) {
    std::fprintf(stderr, "probe: %s\n", std::string(report.status().message()).c_str());
    return 1;
  }
  const std::string text = absl::GetFlag(FLAGS_json) ? plinth::probe::ToJson(*report) + "\n"
                                                     : plinth::probe::ToTable(*report);
  const bool written = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  if (!written) std::perror("probe: cannot write the report");
  return written ? 0 : 1;
}
