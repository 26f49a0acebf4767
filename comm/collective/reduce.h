// Element-wise reduction of one buffer per rank, in rank order.
#ifndef PLINTH_COMM_COLLECTIVE_REDUCE_H_
#define PLINTH_COMM_COLLECTIVE_REDUCE_H_

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
};

// "sum", "avg", "max", "min"; "none" for any other code.
std::string_view ReduceOpName(ReduceOp op);

// f64 f32 bf16 f16, and i8 u8 i32 u32 i64 u64 except for kAvg.
bool CanReduce(ReduceOp op, DType dtype);

// out[i] = sources[0][i] op sources[1][i] op ..., from left to right for every element, so the
// result depends on nothing but the values. bf16 and f16 accumulate in f32 and are rounded once;
// integer sums wrap. `out` may be one of the sources, and must not overlap one otherwise.
// CHECKs CanReduce and that there is a source. Re-entrant; does not allocate.
void Reduce(ReduceOp op, DType dtype, std::span<const void* const> sources, int64_t count,
            void* out);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_COLLECTIVE_REDUCE_H_
