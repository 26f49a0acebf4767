// What a collective does, as data: rounds of sends, receives and reductions of blocks.
//
// A generator (one per algorithm, see algorithms/algorithms.h) writes the program of every rank; it
// can be verified (verify.h), printed (print.h), priced (comm/tuner/cost.h) and run on every
// transport that moves messages. Nothing here knows of memory or time.
//
//   ring all_reduce over 3 ranks, as rank 0 sees it
//   round 0   send input 2 to 1                  receive scratch 0 = block 1 from 2
//             partial scratch 1 = reduce(input 1, scratch 0)
//   round 1   send partial scratch 1 to 1        receive partial scratch 0 = block 0 from 2
//             output 0 = reduce(input 0, partial scratch 0)          finished
//   round 2   send output 0 to 1                 receive output 2 from 2
//   round 3   send output 2 to 1                 receive output 1 from 2
//
// Rounds are numbered alike on all ranks: what one rank sends in a round its peer receives in
// the round of the same number, so no program can deadlock. Ranks are not otherwise in step.
//
// Blocks. The vector of an operation is cut into blocks; an executor gives each a size, which
// may be zero and differ between blocks (problem.h says which rank has which):
//   all_reduce, reduce, broadcast   any number, together the whole vector
//   reduce_scatter, all_gather, gather, scatter   one for each rank: block r is rank r's share
//   all_to_all                      size * size: block i * size + j goes from rank i to rank j
//
// Partial sums. Narrow floats accumulate in f32 and are rounded once, at the end, so a reference
// says what it holds: elements as the user stores them, or a partial sum in the accumulator's
// type. A computation from several sources, or from a partial sum, into a place that is not
// partial finishes the block: it divides for an average and rounds.
#ifndef PLINTH_COMM_PROGRAM_PROGRAM_H_
#define PLINTH_COMM_PROGRAM_PROGRAM_H_

#include <cstdint>
#include <vector>

namespace plinth::comm {

enum class Space : uint8_t {
  kInput,    // what the caller passed in; never written
  kOutput,   // the result; for operations in place the same memory as the input
  kScratch,  // slots of the executor, each as large as the largest block
};

// One block in one place.
struct BlockRef {
  Space space = Space::kInput;
  bool partial = false;  // holds a partial sum in the accumulator's type; scratch only
  int32_t block = 0;     // which block of the vector; decides the size
  int32_t slot = -1;     // scratch only: which slot

  bool operator==(const BlockRef&) const = default;
};

struct SendStep {
  int32_t peer;
  BlockRef from;
};
// `to` has the block and the `partial` of the matching send.
struct ReceiveStep {
  int32_t peer;
  BlockRef to;
};
// One source: a copy, or the finish of a partial sum; nothing to do when both are the same memory.
// Several: their reduction, combined in the order listed. `to` may be one of the sources, of the
// same type.
struct ComputeStep {
  BlockRef to;
  std::vector<BlockRef> from;
};

// Sends and receives go on at once; those between the same two ranks match in list order. The
// computations follow in list order when they are through, and may read what was received.
// A send must not read what a receive of the same round writes.
struct Round {
  std::vector<SendStep> sends;
  std::vector<ReceiveStep> receives;
  std::vector<ComputeStep> computes;
};

// What one rank does. All ranks of an operation have equally many rounds; some may be empty.
struct RankProgram {
  std::vector<Round> rounds;
  int32_t scratch_slots = 0;
  int32_t blocks = 0;  // of the vector; equal on all ranks
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_PROGRAM_PROGRAM_H_
