// Where the blocks of a program lie in the buffers of a call.
#ifndef PLINTH_COMM_EXECUTOR_BLOCK_LAYOUT_H_
#define PLINTH_COMM_EXECUTOR_BLOCK_LAYOUT_H_

#include <cstdint>

#include "plinth/comm/call/call.h"

namespace plinth::comm {

// A view of the call, which outlives it. Blocks are those of program.h; everything is in
// elements. The buffers hold, in the order of ranks and without gaps, what the operation says.
class BlockLayout {
 public:
  // `blocks` are those that a vector (all_reduce, reduce, broadcast) is cut into; other
  // operations have one for each rank or pair of ranks.
  BlockLayout(const CollectiveCall& call, int size, int blocks)
      : call_(call), size_(size), blocks_(blocks) {}

  int64_t Count(int block) const;
  int64_t MostCount() const;  // of any block
  // From the start of what `rank` passes in, and of what it gets.
  int64_t InputOffset(int rank, int block) const;
  int64_t OutputOffset(int rank, int block) const;

 private:
  int64_t VectorBegin(int block) const;
  // Elements of the shares before `block`'s.
  int64_t SharesBefore(int block) const;

  const CollectiveCall& call_;
  const int size_;
  const int blocks_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_EXECUTOR_BLOCK_LAYOUT_H_
