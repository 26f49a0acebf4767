// //comm:bench: how fast collectives are, with nccl-tests' columns, every result checked.
//
//   bazel run -c opt //comm:bench -- --ranks=4 --op=all --transport=shm,tcp
//   bazel run -c opt //comm:bench -- --ranks=2 --transport=shm --vs=mpi
//   bazel run -c opt //comm:bench -- --ranks=2 --transport=tcp --vs=gloo
//
// Starts its ranks itself unless a launcher (torchrun, ...) did. Rank 0 prints.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "plinth/comm/bench/config.h"
#include "plinth/comm/bench/launch/launch.h"
#include "plinth/comm/bench/peers/gloo/gloo_peer.h"
#include "plinth/comm/bench/peers/mpi/mpi_peer.h"
#include "plinth/comm/bench/sweep/sweep.h"
#include "plinth/comm/bench/tuning/choices.h"
#include "plinth/comm/bench/tuning/tune.h"
#include "plinth/comm/executor/program_backend.h"
#include "plinth/comm/rendezvous/environment.h"
#include "plinth/comm/rendezvous/options.h"
#include "plinth/comm/tuner/table_set.h"
#include "plinth/hardware/base/program.h"
#include "plinth/hardware/base/status_macros.h"

ABSL_FLAG(std::string, op, "all_reduce",
          "operations, separated by commas, or all: all_reduce, reduce_scatter, all_gather, "
          "broadcast, reduce, gather, scatter, all_to_all, send_recv, barrier");
ABSL_FLAG(std::string, dtype, "f32", "element types, or all: f32, f64, bf16, f16, i8, ...");
ABSL_FLAG(std::string, redop, "sum", "reductions, or all: sum, avg, prod, min, max");
ABSL_FLAG(std::string, root, "0", "roots of operations that have one, or all");
ABSL_FLAG(std::string, transport, "auto",
          "auto (shm on one host, else tcp), or some of shm, tcp, mem (threads), mpi (ranks that "
          "mpirun starts), nccl (a GPU for each rank); all: the first three");
ABSL_FLAG(std::string, algorithm, "auto", "auto, or names of algorithms, or all");
ABSL_FLAG(std::string, buffers, "private",
          "private: ordinary memory; registered: the group's own, moved without a copy");
ABSL_FLAG(std::string, place, "out,in", "out of place, in place, or both");
ABSL_FLAG(std::string, vs, "",
          "in turns with another library on the same ranks: mpi (Open MPI, over tcp beside "
          "--transport=tcp), gloo (PyTorch's, over tcp)");
ABSL_FLAG(int, ranks, 2, "ranks to start on this host, 1 to 64; a launcher's number if it did");
ABSL_FLAG(int64_t, min_bytes, 8, "smallest size, bytes of the larger buffer of a rank");
ABSL_FLAG(int64_t, max_bytes, int64_t{64} << 20, "largest size");
ABSL_FLAG(int64_t, factor, 4, "from one size to the next, at least 2");
ABSL_FLAG(int, batches, 9, "timed batches for each figure");
ABSL_FLAG(double, batch_ms, 20, "about how long a batch lasts; 0: one call, without warm-up");
ABSL_FLAG(bool, json, false, "print one JSON object (plinth.bench.comm.v2) instead of a table");
ABSL_FLAG(bool, probe, false,
          "over shm: also measure the memory traffic of the same all_reduce and nothing else");
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

// MPI works in ranks that mpirun started.
bool NeedsMpirun(const BenchConfig& config, const CommOptions& options) {
  return config.versus == Versus::kMpi || options.transport == TransportKind::kMpi ||
         std::count(config.transports.begin(), config.transports.end(), "mpi") > 0;
}

PeerStarter PeerStarterFor(const BenchConfig& config) {
  const std::string transport = config.transports.front();
  if (config.versus == Versus::kMpi) {
    return [transport](const CommOptions& options, Store&) {
      const bool as_told = transport == "auto";
      const TransportKind kind = as_told ? options.transport : TransportNamed(transport);
      return MpiPeer::Start({.tcp = kind == TransportKind::kTcp,
                             .one_host = options.local_size == options.size,
                             .any_thread = kind == TransportKind::kMpi});
    };
  }
  if (config.versus == Versus::kGloo) return GlooPeer::Start;
  return nullptr;
}

absl::StatusOr<int> Print(const absl::StatusOr<std::string>& text) {
  RETURN_IF_ERROR(text.status());
  std::fputs(text->c_str(), stdout);
  return 0;
}

absl::StatusOr<int> Main(char** argv) {
  ASSIGN_OR_RETURN(BenchConfig config, ParseBenchConfig(FlagsAsTyped()));
  if (absl::GetFlag(FLAGS_print_program)) return Print(PrintPrograms(config));
  ASSIGN_OR_RETURN(CommOptions options, OptionsFromEnvironment());
  ASSIGN_OR_RETURN(config.tables, TableSet::Load(options.tuning), _ << "PLINTH_COMM_TUNING");
  if (absl::GetFlag(FLAGS_explain)) return Print(ExplainChoices(config));
  RETURN_IF_ERROR(CheckPromisedRanks(std::getenv, options.size));
  RETURN_IF_ERROR(PinsOf(options.algorithm).status()) << "PLINTH_COMM_ALGORITHM";
  if (NeedsMpirun(config, options) && !UnderMpirun(std::getenv)) {
    if (options.size == 1) return RunUnderMpirun(config.ranks, argv);
    return absl::FailedPreconditionError(
        absl::StrCat("MPI needs ranks that mpirun started, these were by ", options.launcher));
  }
  const std::string table = absl::GetFlag(FLAGS_tune);
  if (!table.empty()) options.transport = TransportNamed(config.transports.front());
  const auto run = [&](const CommOptions& own) {
    return table.empty() ? RunSweep(config, own, PeerStarterFor(config)) : RunTune(own, table);
  };
  const bool alone = options.size == 1 && !UnderMpirun(std::getenv);
  if (!alone) EndWithParent();
  RETURN_IF_ERROR(alone ? SpawnRanks(config.ranks, options, run) : run(options));
  return 0;
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
  if (code.ok()) return *code;
  std::fprintf(stderr, "%s\n", std::string(code.status().message()).c_str());
  return 1;
}
