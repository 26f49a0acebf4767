// Which blocks a rank has before an operation and which after it.
#ifndef PLINTH_COMM_PROGRAM_PROBLEM_H_
#define PLINTH_COMM_PROGRAM_PROBLEM_H_

#include <cstdint>

#include "plinth/comm/call/fingerprint.h"

namespace plinth::comm {

// An operation between the ranks 0 .. size-1, as far as a program depends on it. An operation
// with counts for each rank has the program of its plain namesake.
struct Problem {
  OpKind op = OpKind::kAllReduce;
  int size = 1;
  int root = 0;            // of broadcast, reduce, gather, scatter
  int ranks_per_host = 1;  // ranks h * ranks_per_host .. are on host h; the last may hold fewer
};

// The nine from all_reduce to all_to_all and the three v-operations; no others have programs.
bool HasProgram(OpKind op);
// Without counts for each rank: kAllGather for kAllGatherV, other operations as they are.
OpKind PlainOp(OpKind op);
// all_reduce, reduce, reduce_scatter.
bool IsReduction(OpKind op);
// broadcast, reduce, gather, scatter.
bool HasRoot(OpKind op);
// How many blocks the operation is cut into; 0 for those where any number will do.
int32_t BlocksOf(const Problem& problem);

// Of what `from` passes in, the block that `to` gets or combines with others; where vectors are one
// block. Meant for ranks that have such a block as input and as output.
int32_t BlockBetween(const Problem& problem, int from, int to);
// Whether `block` is in what `rank` passes in, and in what it gets.
bool HasInput(const Problem& problem, int rank, int32_t block);
bool HasOutput(const Problem& problem, int rank, int32_t block);
// Whether, for a call in place, input and output of `block` are the same memory at `rank`: the
// whole vector of all_reduce, reduce and broadcast, the own share of the others, nothing of an
// all_to_all.
bool SharesMemory(const Problem& problem, int rank, int32_t block);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_PROGRAM_PROBLEM_H_
