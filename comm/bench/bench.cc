// //comm:bench: all_reduce over a range of sizes, verified, as a table or as JSON.
//
//   bazel run //comm:bench -- --ranks=4 --transport=tcp --max_bytes=16777216
//
// Starts its ranks itself, unless a launcher's variables (RANK, WORLD_SIZE, ...) are set: then
// it is one rank of that launch. Rank 0 prints.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "plinth/comm/bench/measure.h"
#include "plinth/comm/comm.h"
#include "plinth/comm/net/socket.h"
#include "plinth/hardware/base/program.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/tensor/dtype.h"

ABSL_FLAG(int, ranks, 2, "ranks to start on this host, 1 to 64");
ABSL_FLAG(std::string, transport, "auto", "auto, shm or tcp");
ABSL_FLAG(std::string, dtype, "f32", "f32 or bf16");
ABSL_FLAG(int64_t, min_bytes, 8, "smallest buffer, bytes");
ABSL_FLAG(int64_t, max_bytes, int64_t{64} << 20, "largest buffer, bytes");
ABSL_FLAG(int, factor, 4, "from one size to the next, at least 2");
ABSL_FLAG(int, batches, 9, "timed batches per size");
ABSL_FLAG(bool, json, false, "print one JSON object instead of a table");

namespace plinth::comm {
namespace {

struct Settings {
  CommOptions options;
  DType dtype = DType::kF32;
  bool spawn = false;  // start options.size ranks instead of being one
};

absl::StatusOr<TransportKind> ParseTransport(const std::string& text) {
  if (text == "auto") return TransportKind::kAuto;
  if (text == "shm") return TransportKind::kShm;
  if (text == "tcp") return TransportKind::kTcp;
  return absl::InvalidArgumentError(
      absl::StrCat("--transport=", text, " is none of auto, shm, tcp"));
}

absl::StatusOr<Settings> SettingsFromFlags() {
  Settings settings;
  const std::string dtype = absl::GetFlag(FLAGS_dtype);
  if (dtype != "f32" && dtype != "bf16") {
    return absl::InvalidArgumentError(absl::StrCat("--dtype=", dtype, " is neither f32 nor bf16"));
  }
  settings.dtype = *ParseDType(dtype);
  const int ranks = absl::GetFlag(FLAGS_ranks);
  if (ranks < 1 || ranks > 64) {
    return absl::InvalidArgumentError(absl::StrCat("--ranks=", ranks, " is not 1 to 64"));
  }
  if (absl::GetFlag(FLAGS_min_bytes) < 1 || absl::GetFlag(FLAGS_factor) < 2 ||
      absl::GetFlag(FLAGS_batches) < 1) {
    return absl::InvalidArgumentError("--min_bytes and --batches start at 1, --factor at 2");
  }
  ASSIGN_OR_RETURN(settings.options, OptionsFromEnvironment());
  ASSIGN_OR_RETURN(const TransportKind transport, ParseTransport(absl::GetFlag(FLAGS_transport)));
  if (transport != TransportKind::kAuto) settings.options.transport = transport;
  settings.spawn = settings.options.size == 1;
  if (settings.spawn) settings.options.size = settings.options.local_size = ranks;
  return settings;
}

std::string TableLine(const Measurement& m) {
  return absl::StrFormat("%12d %12d %12.1f %10.1f %10.1f %10.3f %10.3f %8d\n", m.bytes, m.count,
                         m.median_us, m.p10_us, m.p90_us, m.algorithm_bandwidth, m.bus_bandwidth,
                         m.errors);
}

std::string JsonRow(const Measurement& m) {
  return absl::StrFormat(
      "{\"bytes\": %d, \"count\": %d, \"median_us\": %.3f, \"p10_us\": %.3f, \"p90_us\": %.3f, "
      "\"algbw_gb_per_s\": %.4f, \"busbw_gb_per_s\": %.4f, \"errors\": %d}",
      m.bytes, m.count, m.median_us, m.p10_us, m.p90_us, m.algorithm_bandwidth, m.bus_bandwidth,
      m.errors);
}

// The whole sweep as one rank; only rank 0 prints.
absl::Status RunRank(const Settings& settings) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> comm,
                   Communicator::Create(settings.options));
  const bool json = absl::GetFlag(FLAGS_json);
  const bool prints = comm->rank() == 0;
  const std::string transport(comm->transport_name());
  const std::string dtype(DTypeName(settings.dtype));
  if (prints && !json) {
    std::printf("# all_reduce sum, %s, %d ranks, %s; bandwidth in GB/s (1e9)\n", dtype.c_str(),
                comm->size(), transport.c_str());
    std::printf("%12s %12s %12s %10s %10s %10s %10s %8s\n", "bytes", "count", "median_us", "p10_us",
                "p90_us", "algbw", "busbw", "errors");
  }
  const int64_t width = DTypeSize(settings.dtype);
  std::vector<std::string> rows;
  int64_t errors = 0;
  for (int64_t bytes = absl::GetFlag(FLAGS_min_bytes); bytes <= absl::GetFlag(FLAGS_max_bytes);
       bytes *= absl::GetFlag(FLAGS_factor)) {
    ASSIGN_OR_RETURN(const Measurement m,
                     MeasureAllReduce(*comm, settings.dtype, std::max<int64_t>(1, bytes / width),
                                      absl::GetFlag(FLAGS_batches)));
    errors += m.errors;
    rows.push_back(JsonRow(m));
    if (prints && !json) std::fputs(TableLine(m).c_str(), stdout);
    std::fflush(stdout);
  }
  if (prints && json) {
    std::printf(
        "{\"version\": 1, \"benchmark\": \"comm\", \"op\": \"all_reduce\", \"reduce\": \"sum\", "
        "\"dtype\": \"%s\", \"ranks\": %d, \"transport\": \"%s\", \"rows\": [\n  %s\n]}\n",
        dtype.c_str(), comm->size(), transport.c_str(), absl::StrJoin(rows, ",\n  ").c_str());
  }
  if (errors != 0) return absl::InternalError(absl::StrCat(errors, " elements are wrong"));
  return absl::OkStatus();
}

int ReportedExit(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}

// Forks before any thread exists. Worst exit code of the ranks.
int SpawnRanks(Settings settings) {
  {
    const absl::StatusOr<Listener> listener = Listen(0);
    if (!listener.ok()) return ReportedExit(listener.status());
    settings.options.store_port = listener->port;  // free again at the end of this block
  }
  std::vector<pid_t> children;
  for (int rank = 0; rank < settings.options.size; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      settings.options.rank = settings.options.local_rank = rank;
      const int code = ReportedExit(RunRank(settings));
      std::fflush(stdout);
      _exit(code);
    }
    children.push_back(child);
  }
  int worst = 0;
  for (const pid_t child : children) {
    int status = 0;
    const bool exited = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
    worst = std::max(worst, exited ? WEXITSTATUS(status) : 1);
  }
  return worst;
}

int Main() {
  const absl::StatusOr<Settings> settings = SettingsFromFlags();
  if (!settings.ok()) return ReportedExit(settings.status());
  return settings->spawn ? SpawnRanks(*settings) : ReportedExit(RunRank(*settings));
}

}  // namespace
}  // namespace plinth::comm

int main(int argc, char** argv) {
  plinth::SetProgramHelp(
      "Times all_reduce between ranks over a range of sizes and verifies the results.\n"
      "Starts --ranks processes, or joins the launch that set RANK, WORLD_SIZE, ...");
  absl::ParseCommandLine(argc, argv);
  return plinth::comm::Main();
}
