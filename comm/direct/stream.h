// Copies and reductions for buffers that other ranks read or write.
#ifndef PLINTH_COMM_DIRECT_STREAM_H_
#define PLINTH_COMM_DIRECT_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "plinth/comm/reduce/reduce.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {

// Where stores go.
enum class StoreTo {
  kCache,   // what is written is read again soon, by whomever
  kMemory,  // past the caches: more than they hold, and nobody reads it soon
};

// Copies; the two may be equal, and must not overlap otherwise. What went to memory is seen by
// other cores only after a FinishStores.
void Copy(const std::byte* from, int64_t bytes, std::byte* to, StoreTo store);

// Reduces `sources` in their order, as Reduce does, and writes the result to every one of
// `targets`. A target may be one of the sources.
void ReduceTo(ReduceOp op, DType dtype, std::span<const void* const> sources, int64_t bytes,
              std::span<std::byte* const> targets, StoreTo store);

// Before this rank signals that it has stored to memory.
void FinishStores(StoreTo store);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_DIRECT_STREAM_H_
