// What a run of the benchmark covers, from the text of its flags.
#ifndef PLINTH_COMM_BENCH_CONFIG_H_
#define PLINTH_COMM_BENCH_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plinth/comm/bench/cases/bench_op.h"
#include "plinth/comm/bench/sweep/measure.h"
#include "plinth/comm/reduce/reduce.h"
#include "plinth/comm/rendezvous/options.h"
#include "plinth/comm/tuner/table_set.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {

// The library that measures in turns with ours.
enum class Versus { kNone, kMpi, kGloo };

// As typed; lists are separated by commas and may be "all".
struct BenchFlags {
  std::string op = "all_reduce";
  std::string dtype = "f32";
  std::string redop = "sum";
  std::string root = "0";
  std::string transport = "auto";
  std::string algorithm = "auto";
  std::string buffers = "private";
  std::string place = "out,in";
  std::string vs;
  int ranks = 2;
  int64_t min_bytes = 8;
  int64_t max_bytes = int64_t{64} << 20;
  int64_t factor = 4;
  int batches = 9;
  double batch_ms = 20;
  bool json = false;
  bool probe = false;
};

struct BenchConfig {
  std::vector<BenchOp> ops;
  std::vector<DType> dtypes;
  std::vector<ReduceOp> reduces;
  std::vector<int> roots;  // empty: every rank in turn
  std::vector<std::string> transports;
  std::vector<std::string> algorithms;
  bool registered = false;
  bool out_of_place = true;
  bool in_place = true;
  Versus versus = Versus::kNone;
  int ranks = 2;
  std::vector<int64_t> sizes;  // bytes, ascending
  MeasurePlan plan;
  TableSet tables;  // that algorithms are chosen by
  bool json = false;
  bool probe = false;
};

// Of the names that --transport takes, but "mem", which is no kind of a launch's transport; kAuto
// for any other.
TransportKind TransportNamed(const std::string& name);

// kInvalidArgument in one line that names the flag, what it holds and what it may hold.
absl::StatusOr<BenchConfig> ParseBenchConfig(const BenchFlags& flags);

// The measured calls of one operation, each once: what its type, reduction, root and share can
// be within the configuration. `ranks` is the size of the group.
std::vector<Shape> ShapesOf(const BenchConfig& config, BenchOp op, int ranks);

// The most that a buffer of any of them holds.
int64_t MostBytes(const BenchConfig& config, int ranks);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_CONFIG_H_
