// Element-wise reduction of several buffers, in the order given.
#ifndef PLINTH_COMM_REDUCE_REDUCE_H_
#define PLINTH_COMM_REDUCE_REDUCE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {

// Values travel between ranks.
enum class ReduceOp : uint8_t {
  kNone = 0,  // of operations that do not reduce
  kSum = 1,
  kAvg = 2,  // the sum divided by the number of ranks; floating point only
  kMax = 3,  // NaN wins
  kMin = 4,  // NaN wins
  kProd = 5,
};

// "sum", "avg", "max", "min", "prod"; "none" for any other code.
std::string_view ReduceOpName(ReduceOp op);

// f64 f32 bf16 f16 f8e4m3 f8e5m2, and i8 u8 i32 u32 i64 u64 except for kAvg.
bool CanReduce(ReduceOp op, DType dtype);

// What sums of `dtype` are kept in until they are rounded: f32 for narrower floats, otherwise
// `dtype` itself.
DType AccumulatorOf(DType dtype);

struct ReduceSource {
  const void* data = nullptr;
  // Holds AccumulatorOf(dtype), as ReducePartial wrote it, rather than `dtype`.
  bool partial = false;
};

// out[i] = sources[0][i] op sources[1][i] op ..., from left to right for every element, so the
// result depends on nothing but the values. Narrow floats accumulate in f32; integers wrap; a
// single source is converted. `out` may be one of the sources if it has the same element type,
// and must not overlap one otherwise. No alignment is asked for.
// CHECKs CanReduce and that there is a source. Re-entrant; does not allocate.
//
// Partial: writes AccumulatorOf(dtype), undivided. Finish: divides by `ranks` for an average
// and rounds, once, to `dtype`; f8 values past the largest become the largest.
void ReducePartial(ReduceOp op, DType dtype, std::span<const ReduceSource> sources, int64_t count,
                   void* out);
void ReduceFinish(ReduceOp op, DType dtype, std::span<const ReduceSource> sources, int64_t count,
                  void* out, int ranks);

// All at once: one source per rank, each as the user stored it. Allocates from 65 ranks on.
void Reduce(ReduceOp op, DType dtype, std::span<const void* const> sources, int64_t count,
            void* out);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_REDUCE_REDUCE_H_
