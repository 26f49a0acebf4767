// All algorithms. A new one is a generator and a line in algorithms.cc.
#ifndef PLINTH_COMM_PROGRAM_ALGORITHMS_ALGORITHMS_H_
#define PLINTH_COMM_PROGRAM_ALGORITHMS_ALGORITHMS_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "plinth/comm/program/builder.h"
#include "plinth/comm/program/problem.h"
#include "plinth/comm/program/program.h"

namespace plinth::comm {

struct Algorithm {
  std::string_view name;  // lower case and underscores
  void (*generate)(ProgramBuilder& builder);
  uint32_t operations;  // bit 1 << op for each OpKind that it can do
  bool pipelined;       // slices overlap, see slice.h
  bool needs_hosts;     // of use only with several hosts of several ranks

  bool Supports(OpKind op) const { return operations >> static_cast<int>(op) & 1; }
};

// In the order in which equals are preferred; "mesh", the first, supports every operation.
std::span<const Algorithm> Algorithms();

// By name; null if there is none.
const Algorithm* FindAlgorithm(std::string_view name);

// CHECK that algorithm.Supports(problem.op). Deterministic: all ranks agree without a word.
// Cost: microseconds for tens of ranks, as the parts of all ranks are gone through.
RankProgram GenerateProgram(const Algorithm& algorithm, const Problem& problem, int rank);
std::vector<RankProgram> GenerateAllPrograms(const Algorithm& algorithm, const Problem& problem);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_PROGRAM_ALGORITHMS_ALGORITHMS_H_
