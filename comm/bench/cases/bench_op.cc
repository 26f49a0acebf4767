#include "plinth/comm/bench/cases/bench_op.h"

#include <algorithm>

#include "plinth/hardware/base/check.h"

namespace plinth::comm {
namespace {

struct OpTraits {
  BenchOp op;
  std::string_view name;
  bool reduces;
  bool rooted;
  bool in_place;
  // Whether the buffer holds a share for every rank, or one.
  bool input_of_shares;
  bool output_of_shares;
};

constexpr OpTraits kTraits[] = {
    {BenchOp::kAllReduce, "all_reduce", true, false, true, false, false},
    {BenchOp::kReduceScatter, "reduce_scatter", true, false, true, true, false},
    {BenchOp::kAllGather, "all_gather", false, false, true, false, true},
    {BenchOp::kBroadcast, "broadcast", false, true, true, false, false},
    {BenchOp::kReduce, "reduce", true, true, true, false, false},
    {BenchOp::kGather, "gather", false, true, true, false, true},
    {BenchOp::kScatter, "scatter", false, true, true, true, false},
    {BenchOp::kAllToAll, "all_to_all", false, false, false, true, true},
    {BenchOp::kSendReceive, "send_recv", false, false, false, false, false},
    {BenchOp::kBarrier, "barrier", false, false, false, false, false},
};
const OpTraits& TraitsOf(BenchOp op) {
  for (const OpTraits& traits : kTraits) {
    if (traits.op == op) return traits;
  }
  CHECK(false) << static_cast<int>(op);
  return kTraits[0];
}

}  // namespace

std::vector<BenchOp> AllBenchOps() {
  std::vector<BenchOp> ops;
  for (const OpTraits& traits : kTraits) ops.push_back(traits.op);
  return ops;
}

std::string_view BenchOpName(BenchOp op) { return TraitsOf(op).name; }

std::optional<BenchOp> ParseBenchOp(std::string_view name) {
  for (const OpTraits& traits : kTraits) {
    if (traits.name == name) return traits.op;
  }
  return std::nullopt;
}

bool Reduces(BenchOp op) { return TraitsOf(op).reduces; }
bool HasRoot(BenchOp op) { return TraitsOf(op).rooted; }
bool WorksInPlace(BenchOp op) { return TraitsOf(op).in_place; }
bool WorksOutOfPlace(BenchOp op) { return op != BenchOp::kBroadcast; }

int64_t InputElements(const Shape& shape, int rank) {
  const bool from_root = shape.op == BenchOp::kBroadcast || shape.op == BenchOp::kScatter;
  // In place the others' memory only takes the result, so this is right for broadcast, too.
  if (from_root && rank != shape.root) return 0;
  return shape.count * (TraitsOf(shape.op).input_of_shares ? shape.ranks : 1);
}

int64_t OutputElements(const Shape& shape, int rank) {
  const bool to_root = shape.op == BenchOp::kReduce || shape.op == BenchOp::kGather;
  if (to_root && rank != shape.root) return 0;
  return shape.count * (TraitsOf(shape.op).output_of_shares ? shape.ranks : 1);
}

int64_t ShapeBytes(const Shape& shape) {
  const int rank = HasRoot(shape.op) ? shape.root : 0;
  return std::max(InputElements(shape, rank), OutputElements(shape, rank)) * DTypeSize(shape.dtype);
}

int64_t CountFor(BenchOp op, DType dtype, int ranks, int64_t bytes) {
  if (op == BenchOp::kBarrier) return 0;
  const OpTraits& traits = TraitsOf(op);
  const int64_t shares = traits.input_of_shares || traits.output_of_shares ? ranks : 1;
  return std::max<int64_t>(1, bytes / DTypeSize(dtype) / shares);
}

CallBuffers PlaceBuffers(const Shape& shape, int rank, bool in_place, void* in_memory,
                         void* out_memory) {
  const int64_t in = InputElements(shape, rank), out = OutputElements(shape, rank);
  CallBuffers buffers{.in_place = in_place};
  if (in > 0) buffers.in = in_place ? out_memory : in_memory;
  if (out > 0) buffers.out = out_memory;
  if (in_place && in > 0 && out > 0 && in != out) {
    auto* share = static_cast<std::byte*>(out_memory) + rank * shape.count * DTypeSize(shape.dtype);
    if (in < out) {
      buffers.in = share;
    } else {
      buffers.out = share;
    }
  }
  return buffers;
}

double BusFactor(BenchOp op, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (op) {
    case BenchOp::kAllReduce:
      return 2 * others;
    case BenchOp::kReduceScatter:
    case BenchOp::kAllGather:
    case BenchOp::kGather:
    case BenchOp::kScatter:
    case BenchOp::kAllToAll:
      return others;
    case BenchOp::kBroadcast:
    case BenchOp::kReduce:
    case BenchOp::kSendReceive:
      return 1;
    case BenchOp::kBarrier:
      return 0;
  }
  return 0;
}

int64_t CountWrong(const Shape& shape, const Pattern& pattern, int rank, const void* out) {
  const int64_t count = shape.count;
  const int64_t share_bytes = count * DTypeSize(shape.dtype);
  const auto* bytes = static_cast<const char*>(out);
  if (OutputElements(shape, rank) == 0) return 0;
  switch (shape.op) {
    case BenchOp::kAllReduce:
    case BenchOp::kReduce:
      return pattern.CountWrong(Pattern::kReduced, 0, count, out);
    case BenchOp::kReduceScatter:
      return pattern.CountWrong(Pattern::kReduced, rank * count, count, out);
    case BenchOp::kBroadcast:
      return pattern.CountWrong(shape.root, 0, count, out);
    case BenchOp::kScatter:
      return pattern.CountWrong(shape.root, rank * count, count, out);
    case BenchOp::kSendReceive:
      return pattern.CountWrong((rank + shape.ranks - 1) % shape.ranks, 0, count, out);
    case BenchOp::kAllGather:
    case BenchOp::kGather:
    case BenchOp::kAllToAll: {
      const int64_t begin = shape.op == BenchOp::kAllToAll ? rank * count : 0;
      int64_t wrong = 0;
      for (int from = 0; from < shape.ranks; ++from) {
        wrong += pattern.CountWrong(from, begin, count, bytes + from * share_bytes);
      }
      return wrong;
    }
    case BenchOp::kBarrier:
      return 0;
  }
  return 0;
}

}  // namespace plinth::comm
