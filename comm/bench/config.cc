#include "plinth/comm/bench/config.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "plinth/comm/program/algorithms/algorithms.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr int kMostRanks = 64;

constexpr ReduceOp kReduceOps[] = {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kProd, ReduceOp::kMin,
                                   ReduceOp::kMax};
constexpr DType kDTypes[] = {DType::kF32,    DType::kF64,    DType::kBf16, DType::kF16,
                             DType::kF8E4M3, DType::kF8E5M2, DType::kI8,   DType::kU8,
                             DType::kI32,    DType::kU32,    DType::kI64,  DType::kU64};

absl::Status Wrong(const char* flag, const std::string& text, const std::string& expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, ": \"", text, "\", expected ", expected));
}

// The values of a list; `all` for "all". Names are those of `all`.
template <typename T>
absl::StatusOr<std::vector<T>> ParseList(const char* flag, const std::string& text,
                                         const std::vector<T>& all,
                                         const std::function<std::string(T)>& name) {
  if (text == "all") return all;
  std::vector<std::string> names;
  for (const T& value : all) names.push_back(name(value));
  std::vector<T> values;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(text, ','))) {
    const auto found = std::find(names.begin(), names.end(), part);
    if (found == names.end()) {
      return Wrong(flag, part, absl::StrCat(absl::StrJoin(names, ", "), " or all"));
    }
    values.push_back(all[found - names.begin()]);
  }
  return values;
}

absl::StatusOr<std::vector<std::string>> ParseNames(const char* flag, const std::string& text,
                                                    const std::vector<std::string>& all) {
  return ParseList<std::string>(flag, text, all, [](std::string name) { return name; });
}

absl::StatusOr<std::vector<int>> ParseRoots(const std::string& text) {
  std::vector<int> roots;
  if (text == "all") return roots;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(text, ','))) {
    int root = 0;
    if (!absl::SimpleAtoi(part, &root) || root < 0) {
      return Wrong("root", part, "ranks from 0 or all");
    }
    roots.push_back(root);
  }
  return roots;
}

absl::Status ParseNumbers(const BenchFlags& flags, BenchConfig& config) {
  const auto check = [](const char* flag, int64_t value, int64_t least, int64_t most) {
    if (value >= least && value <= most) return absl::OkStatus();
    return Wrong(flag, absl::StrCat(value), absl::StrCat(least, " to ", most));
  };
  constexpr int64_t kMostBytes = int64_t{1} << 40;
  RETURN_IF_ERROR(check("ranks", flags.ranks, 1, kMostRanks));
  RETURN_IF_ERROR(check("min_bytes", flags.min_bytes, 1, kMostBytes));
  RETURN_IF_ERROR(check("max_bytes", flags.max_bytes, flags.min_bytes, kMostBytes));
  RETURN_IF_ERROR(check("factor", flags.factor, 2, kMostBytes));
  RETURN_IF_ERROR(check("batches", flags.batches, 1, 100000));
  if (!(flags.batch_ms >= 0 && flags.batch_ms <= 60000)) {
    return Wrong("batch_ms", absl::StrCat(flags.batch_ms), "0 to 60000");
  }
  config.ranks = flags.ranks;
  for (int64_t bytes = flags.min_bytes; bytes <= flags.max_bytes; bytes *= flags.factor) {
    config.sizes.push_back(bytes);
  }
  config.plan.batches = flags.batches;
  config.plan.batch_length = absl::Milliseconds(flags.batch_ms);
  if (flags.batch_ms == 0) config.plan.warm_up_calls = 0;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ParseTransports(const std::string& text) {
  if (text == "auto") return std::vector<std::string>{"auto"};
  // Not those that need a launcher or a GPU.
  if (text == "all") return std::vector<std::string>{"shm", "tcp", "mem"};
  ASSIGN_OR_RETURN(std::vector<std::string> names,
                   ParseNames("transport", text, {"shm", "tcp", "mem", "mpi", "nccl"}));
  // mem comes last: its ranks are threads of rank 0, which the other processes do not wait for.
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name != "mem"; });
  return names;
}

// Which path the other library takes follows from ours, and it has one for the whole run.
absl::Status ParseVersus(const BenchFlags& flags, BenchConfig& config) {
  if (flags.vs.empty()) return absl::OkStatus();
  if (flags.vs != "mpi" && flags.vs != "gloo") return Wrong("vs", flags.vs, "mpi or gloo");
  config.versus = flags.vs == "mpi" ? Versus::kMpi : Versus::kGloo;
  const std::string& transport = config.transports.front();
  if (config.transports.size() == 1 && transport != "mem" && transport != "nccl") {
    return absl::OkStatus();
  }
  return Wrong("transport", flags.transport,
               absl::StrCat("one of auto, shm, tcp and mpi beside --vs=", flags.vs));
}

}  // namespace

TransportKind TransportNamed(const std::string& name) {
  if (name == "shm") return TransportKind::kShm;
  if (name == "tcp") return TransportKind::kTcp;
  if (name == "mpi") return TransportKind::kMpi;
  if (name == "nccl") return TransportKind::kNccl;
  return TransportKind::kAuto;
}

absl::StatusOr<BenchConfig> ParseBenchConfig(const BenchFlags& flags) {
  BenchConfig config;
  const auto op_name = [](BenchOp op) { return std::string(BenchOpName(op)); };
  const auto dtype_name = [](DType dtype) { return std::string(DTypeName(dtype)); };
  const auto reduce_name = [](ReduceOp op) { return std::string(ReduceOpName(op)); };
  ASSIGN_OR_RETURN(config.ops, ParseList<BenchOp>("op", flags.op, AllBenchOps(), op_name));
  ASSIGN_OR_RETURN(
      config.dtypes,
      ParseList<DType>("dtype", flags.dtype,
                       std::vector<DType>(std::begin(kDTypes), std::end(kDTypes)), dtype_name));
  ASSIGN_OR_RETURN(config.reduces, ParseList<ReduceOp>("redop", flags.redop,
                                                       std::vector<ReduceOp>(std::begin(kReduceOps),
                                                                             std::end(kReduceOps)),
                                                       reduce_name));
  ASSIGN_OR_RETURN(config.roots, ParseRoots(flags.root));
  ASSIGN_OR_RETURN(config.transports, ParseTransports(flags.transport));
  std::vector<std::string> algorithms = {"auto"};
  for (const Algorithm& algorithm : Algorithms()) algorithms.emplace_back(algorithm.name);
  ASSIGN_OR_RETURN(config.algorithms, ParseNames("algorithm", flags.algorithm, algorithms));
  ASSIGN_OR_RETURN(const std::vector<std::string> places,
                   ParseNames("place", flags.place, {"out", "in"}));
  config.out_of_place = std::find(places.begin(), places.end(), "out") != places.end();
  config.in_place = std::find(places.begin(), places.end(), "in") != places.end();
  if (flags.buffers != "private" && flags.buffers != "registered") {
    return Wrong("buffers", flags.buffers, "private or registered");
  }
  config.registered = flags.buffers == "registered";
  RETURN_IF_ERROR(ParseVersus(flags, config));
  RETURN_IF_ERROR(ParseNumbers(flags, config));
  config.json = flags.json;
  config.probe = flags.probe;
  return config;
}

std::vector<Shape> ShapesOf(const BenchConfig& config, BenchOp op, int ranks) {
  std::vector<ReduceOp> reduces = config.reduces;
  if (!Reduces(op)) reduces = {ReduceOp::kNone};
  std::vector<int> roots = config.roots;
  if (!HasRoot(op)) {
    roots = {-1};
  } else if (roots.empty()) {
    for (int rank = 0; rank < ranks; ++rank) roots.push_back(rank);
  }
  // No data, so neither size nor type matters.
  if (op == BenchOp::kBarrier) return {{.op = op, .ranks = ranks}};

  std::vector<Shape> shapes;
  for (const DType dtype : config.dtypes) {
    for (const ReduceOp reduce : reduces) {
      if (reduce != ReduceOp::kNone && !CanReduce(reduce, dtype)) continue;
      for (const int root : roots) {
        int64_t last = -1;
        for (const int64_t bytes : config.sizes) {
          const int64_t count = CountFor(op, dtype, ranks, bytes);
          if (count == last) continue;  // small sizes may round to the same share
          shapes.push_back({op, dtype, reduce, root, count, ranks});
          last = count;
        }
      }
    }
  }
  return shapes;
}

int64_t MostBytes(const BenchConfig& config, int ranks) {
  int64_t most = 1;
  for (const BenchOp op : config.ops) {
    for (const Shape& shape : ShapesOf(config, op, ranks)) most = std::max(most, ShapeBytes(shape));
  }
  return most;
}

}  // namespace plinth::comm
