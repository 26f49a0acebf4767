// The operations that the benchmark knows: their buffers, their results, their bandwidth.
#ifndef PLINTH_COMM_BENCH_CASES_BENCH_OP_H_
#define PLINTH_COMM_BENCH_CASES_BENCH_OP_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "plinth/comm/bench/cases/pattern.h"
#include "plinth/comm/reduce/reduce.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {

enum class BenchOp : uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kAllToAll,
  kSendReceive,  // every rank to the next one, around in a ring
  kBarrier,
};

std::vector<BenchOp> AllBenchOps();
std::string_view BenchOpName(BenchOp op);  // "all_reduce", ...
std::optional<BenchOp> ParseBenchOp(std::string_view name);

bool Reduces(BenchOp op);
bool HasRoot(BenchOp op);
// Whether input and output may, and whether they need not, share memory.
bool WorksInPlace(BenchOp op);
bool WorksOutOfPlace(BenchOp op);

// One measured call: `count` elements are one rank's share, what the call is given as its count.
struct Shape {
  BenchOp op = BenchOp::kAllReduce;
  DType dtype = DType::kF32;
  ReduceOp reduce = ReduceOp::kNone;
  int root = -1;  // -1: the operation has none
  int64_t count = 0;
  int ranks = 1;
};

// Elements that this rank passes in and gets; 0 where only the root has them and it is not.
int64_t InputElements(const Shape& shape, int rank);
int64_t OutputElements(const Shape& shape, int rank);
// What the bandwidths count: the larger of the two buffers, at the root where there is one.
int64_t ShapeBytes(const Shape& shape);
// The share such that ShapeBytes is about `bytes`; at least one element.
int64_t CountFor(BenchOp op, DType dtype, int ranks, int64_t bytes);

// What a rank passes to one call. In place, the smaller of the two lies where this rank's share is
// in the larger one. Views.
struct CallBuffers {
  const void* in = nullptr;  // null where this rank has none
  void* out = nullptr;
  bool in_place = false;
};

// `out_memory` holds ShapeBytes; so does `in_memory`, which an operation in place ignores.
CallBuffers PlaceBuffers(const Shape& shape, int rank, bool in_place, void* in_memory,
                         void* out_memory);

// Bus bandwidth = factor * bytes / time; docs/bus_bandwidth.md derives the factors.
double BusFactor(BenchOp op, int ranks);

// Wrong elements of this rank's output; 0 when it gets none.
int64_t CountWrong(const Shape& shape, const Pattern& pattern, int rank, const void* out);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_CASES_BENCH_OP_H_
