// ckpt: shows and verifies checkpoints.
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "plinth/hardware/base/program.h"
#include "plinth/storage/checkpoint/report.h"

ABSL_FLAG(bool, json, false, "print one JSON object instead of a table");

namespace {

constexpr char kUsage[] =
    "shows and verifies checkpoints\n\n"
    "  ckpt inspect PATH [--json]   step, state, files and tensors\n"
    "  ckpt verify PATH [--json]    read everything and compare all checksums\n\n"
    "PATH is a checkpoint directory, or a run's directory for its newest complete one.\n"
    "Exit status: 0 good, 1 damaged or unreadable, 2 wrong usage.";

template <typename Report>
int Print(const absl::StatusOr<Report>& report) {
  if (!report.ok()) return plinth::PrintReport("ckpt", report.status());
  return plinth::PrintReport("ckpt", absl::GetFlag(FLAGS_json) ? plinth::storage::ToJson(*report)
                                                               : plinth::storage::ToText(*report));
}

}  // namespace

int main(int argc, char** argv) {
  plinth::SetProgramHelp(kUsage);
  const std::vector<char*> words = plinth::ParseFlags(argc, argv);
  const std::string command = words.size() == 3 ? words[1] : "";
  if (command == "inspect") return Print(plinth::storage::Inspect(words[2]));
  if (command == "verify") {
    const auto report = plinth::storage::VerifyCheckpoint(words[2], isatty(STDERR_FILENO) != 0);
    const int printed = Print(report);
    return printed != 0 || report->ok() ? printed : 1;
  }
  std::fprintf(stderr, "ckpt: expected \"inspect PATH\" or \"verify PATH\"; see ckpt --help\n");
  return 2;
}
