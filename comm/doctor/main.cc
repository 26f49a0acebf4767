// //comm:doctor: reads the flight recorders of a run and says what went wrong.
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "plinth/comm/doctor/diagnose.h"
#include "plinth/comm/doctor/report.h"
#include "plinth/comm/doctor/run_view.h"
#include "plinth/comm/recorder/dump.h"
#include "plinth/comm/recorder/recorder.h"
#include "plinth/hardware/base/program.h"

ABSL_FLAG(bool, json, false, "print one JSON object instead of tables");
ABSL_FLAG(int, calls, 8, "how many of the last calls of each group to list");

namespace plinth::comm {
namespace {

constexpr int kFoundFault = 3;

int Fail(const std::string& message) {
  std::fprintf(stderr, "doctor: %s\n", message.c_str());
  return 1;
}

int Main(const std::vector<char*>& arguments) {
  if (arguments.size() != 2) return Fail("give one directory of dumps; see --help");
  if (absl::GetFlag(FLAGS_calls) < 0) return Fail("--calls is below 0");
  const absl::StatusOr<DumpDirectory> directory = ReadDumpDirectory(arguments[1]);
  if (!directory.ok()) return Fail(std::string(directory.status().message()));
  if (directory->dumps.empty()) {
    for (const auto& file : directory->unreadable) Fail(file.path + ": " + file.reason);
    return Fail(absl::StrCat(arguments[1], ": none of its dumps can be read"));
  }
  const RunView run = MakeRunView(*directory, ProbeProcess, MonotonicNanoseconds());
  const Diagnosis diagnosis = Diagnose(run);
  const std::string report = absl::GetFlag(FLAGS_json)
                                 ? JsonReport(run, diagnosis)
                                 : TextReport(run, diagnosis, absl::GetFlag(FLAGS_calls));
  std::fputs(report.c_str(), stdout);
  return diagnosis.verdict.kind == FindingKind::kNone ? 0 : kFoundFault;
}

}  // namespace
}  // namespace plinth::comm

int main(int argc, char** argv) {
  plinth::SetProgramHelp(
      "bazel run //comm:doctor -- DIRECTORY\n"
      "Says which rank broke which call, from the dumps that a run left in DIRECTORY.\n"
      "PLINTH_COMM_DUMP_DIR chooses that directory; else the error of the run names it.\n"
      "Works on a run that hangs, too. Exit code: 0 no fault found, 3 a fault, 1 no dumps.\n");
  return plinth::comm::Main(plinth::ParseFlags(argc, argv));
}
