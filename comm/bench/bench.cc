// //comm:bench: how fast collectives are, with nccl-tests' columns, every result checked.
//
//   bazel run -c opt //comm:bench -- --ranks=4 --op=all --transport=shm,tcp
//   bazel run -c opt //comm:bench -- --ranks=2 --transport=shm --vs=mpi
//
// Starts its ranks itself unless a launcher (torchrun, ...) did. Rank 0 prints.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/flags/flag.h"
#include "plinth/comm/bench/config.h"
#include "plinth/comm/bench/launch/launch.h"
#include "plinth/comm/bench/peers/mpi/mpi_peer.h"
#include "plinth/comm/bench/sweep.h"
#include "plinth/comm/bench/tuning/choices.h"
#include "plinth/comm/bench/tuning/tune.h"
#include "plinth/comm/rendezvous/environment.h"
#include "plinth/comm/rendezvous/options.h"
#include "plinth/hardware/base/program.h"
#include "plinth/hardware/base/status_macros.h"

ABSL_FLAG(std::string, op, "all_reduce",
          "operations, separated by commas, or all: all_reduce, reduce_scatter, all_gather, "
          "broadcast, reduce, gather, scatter, all_to_all, send_recv, barrier");
ABSL_FLAG(std::string, dtype, "f32", "element types, or all: f32, f64, bf16, f16, i8, ...");
ABSL_FLAG(std::string, redop, "sum", "reductions, or all: sum, avg, prod, min, max");
ABSL_FLAG(std::string, root, "0", "roots of operations that have one, or all");
ABSL_FLAG(std::string, transport, "auto",
          "auto (shm on one host, else tcp), or some of shm, tcp, mem (threads), or all");
ABSL_FLAG(std::string, algorithm, "auto", "auto, or names of algorithms, or all");
ABSL_FLAG(std::string, buffers, "private",
          "private: ordinary memory; registered: the group's own, moved without a copy");
ABSL_FLAG(std::string, place, "out,in", "out of place, in place, or both");
ABSL_FLAG(std::string, vs, "", "mpi: in turns with Open MPI on the same ranks");
ABSL_FLAG(int, ranks, 2, "ranks to start on this host, 1 to 64; a launcher's number if it did");
ABSL_FLAG(int64_t, min_bytes, 8, "smallest size, bytes of the larger buffer of a rank");
ABSL_FLAG(int64_t, max_bytes, int64_t{64} << 20, "largest size");
ABSL_FLAG(int64_t, factor, 4, "from one size to the next, at least 2");
ABSL_FLAG(int, batches, 9, "timed batches for each figure");
ABSL_FLAG(double, batch_ms, 20, "about how long a batch lasts; 0: one call, without warm-up");
ABSL_FLAG(bool, json, false, "print one JSON object (plinth.bench.comm.v2) instead of a table");
ABSL_FLAG(bool, probe, false,
          "2 ranks over shm: also measure the same all_reduce on bare shared memory");
ABSL_FLAG(bool, explain, false, "print the tuner's choice for each size and why, measure nothing");
ABSL_FLAG(std::string, tune, "",
          "measure the link between 2 ranks and write the tuner's table to this file");
ABSL_FLAG(bool, print_program, false,
          "print the algorithms' steps for these operations and ranks, measure nothing");

namespace plinth::comm {
namespace {

BenchFlags FlagsAsTyped() {
  BenchFlags flags;
  flags.op = absl::GetFlag(FLAGS_op);
  flags.dtype = absl::GetFlag(FLAGS_dtype);
  flags.redop = absl::GetFlag(FLAGS_redop);
  flags.root = absl::GetFlag(FLAGS_root);
  flags.transport = absl::GetFlag(FLAGS_transport);
  flags.algorithm = absl::GetFlag(FLAGS_algorithm);
  flags.buffers = absl::GetFlag(FLAGS_buffers);
  flags.place = absl::GetFlag(FLAGS_place);
  flags.vs = absl::GetFlag(FLAGS_vs);
  flags.ranks = absl::GetFlag(FLAGS_ranks);
  flags.min_bytes = absl::GetFlag(FLAGS_min_bytes);
  flags.max_bytes = absl::GetFlag(FLAGS_max_bytes);
  flags.factor = absl::GetFlag(FLAGS_factor);
  flags.batches = absl::GetFlag(FLAGS_batches);
  flags.batch_ms = absl::GetFlag(FLAGS_batch_ms);
  flags.json = absl::GetFlag(FLAGS_json);
  flags.probe = absl::GetFlag(FLAGS_probe);
  return flags;
}

int ExitCode(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}

absl::Status RunWithMpi(const BenchConfig& config, char** argv) {
  if (!UnderMpirun(std::getenv)) return ExecUnderMpirun(config.ranks, argv);
  ASSIGN_OR_RETURN(const std::unique_ptr<MpiPeer> peer, MpiPeer::Start());
  ASSIGN_OR_RETURN(const CommOptions options, peer->Options());
  RETURN_IF_ERROR(CheckPromisedRanks(std::getenv, options.size));
  return RunSweep(config, options, peer.get());
}

int Printed(const absl::StatusOr<std::string>& text) {
  if (text.ok()) std::fputs(text->c_str(), stdout);
  return ExitCode(text.status());
}

absl::StatusOr<int> Main(char** argv) {
  ASSIGN_OR_RETURN(const BenchConfig config, ParseBenchConfig(FlagsAsTyped()));
  if (absl::GetFlag(FLAGS_print_program)) return Printed(PrintPrograms(config));
  if (absl::GetFlag(FLAGS_explain)) return Printed(ExplainChoices(config));
  if (config.versus_mpi) return ExitCode(RunWithMpi(config, argv));
  ASSIGN_OR_RETURN(CommOptions options, OptionsFromEnvironment());
  RETURN_IF_ERROR(CheckPromisedRanks(std::getenv, options.size));
  const std::string table = absl::GetFlag(FLAGS_tune);
  if (!table.empty()) options.transport = TransportNamed(config.transports.front());
  const auto run = [&](const CommOptions& own) {
    return ExitCode(table.empty() ? RunSweep(config, own, nullptr) : RunTune(own, table));
  };
  return options.size == 1 ? SpawnRanks(config.ranks, options, run) : run(options);
}

}  // namespace
}  // namespace plinth::comm

int main(int argc, char** argv) {
  plinth::SetProgramHelp(
      "Times collectives between ranks and checks every result.\n"
      "  bazel run -c opt //comm:bench -- --ranks=4 --op=all --transport=shm,tcp\n"
      "  bazel run -c opt //comm:bench -- --ranks=2 --transport=shm --vs=mpi\n"
      "Starts --ranks processes, or joins the launch that set RANK, WORLD_SIZE, ...\n"
      "algbw is bytes / time; busbw is algbw times a factor of the operation\n"
      "(docs/bus_bandwidth.md) and compares with the speed of a link. #wrong counts\n"
      "elements over all ranks; any makes the exit status 1.");
  plinth::ParseFlagsOnly("bench", argc, argv);
  const absl::StatusOr<int> code = plinth::comm::Main(argv);
  return code.ok() ? *code : plinth::comm::ExitCode(code.status());
}
