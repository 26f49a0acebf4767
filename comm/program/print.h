// Programs as text.
#ifndef PLINTH_COMM_PROGRAM_PRINT_H_
#define PLINTH_COMM_PROGRAM_PRINT_H_

#include <span>
#include <string>

#include "plinth/comm/program/program.h"

namespace plinth::comm {

// "input 3", "output 3", "scratch 1 = block 3", "partial scratch 1 = block 3".
std::string ToString(const BlockRef& ref);
// "send input 2 to 1".
std::string ToString(const SendStep& step);
// "receive scratch 0 = block 1 from 2".
std::string ToString(const ReceiveStep& step);
// "output 1 = reduce(input 1, partial scratch 0 = block 1)", "output 1 = copy(input 1)".
std::string ToString(const ComputeStep& step);

// One rank's program, a line for each step, ending in a newline.
std::string PrintProgram(const RankProgram& program);

// Who sends what to whom: a row for each round, a column for each rank, all blocks of a row
// together. A block is marked * while it is a partial sum. "2*>1" in column 0: rank 0 sends what
// it has of block 2 to rank 1. Ends in a newline.
std::string PrintTable(std::span<const RankProgram> programs);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_PROGRAM_PRINT_H_
