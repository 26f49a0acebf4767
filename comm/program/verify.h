// Proves of a program, by running it on symbols, that it does what its operation promises.
#ifndef PLINTH_COMM_PROGRAM_VERIFY_H_
#define PLINTH_COMM_PROGRAM_VERIFY_H_

#include <span>

#include "absl/status/status.h"
#include "plinth/comm/program/problem.h"
#include "plinth/comm/program/program.h"

namespace plinth::comm {

// `programs` are those of all ranks, by rank. OK if they are right both with input and output
// apart and in place:
//   - the k-th send from a to b in a round matches the k-th receive at b from a, in block and type;
//   - nothing is read that was not written, holds another block or another type;
//   - no send reads what a receive of its round writes, no two receives write one place, the input
//     and blocks that the operation does not give this rank are never written, slots are in range;
//   - a reduction adds no contribution twice and finishes a block with all contributions only;
//   - at the end every block of every rank's output is finished, and none arrived twice.
// Otherwise kInvalidArgument naming the first fault by round, rank and step:
//   "all_reduce over 3 ranks, in place: round 2, rank 1: send output 2 to 0: not written yet"
// Rounds of sizes that agree cannot deadlock, so matching is all there is to that.
// Cost: a few hundred nanoseconds for each step of all ranks.
absl::Status VerifyPrograms(const Problem& problem, std::span<const RankProgram> programs);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_PROGRAM_VERIFY_H_
