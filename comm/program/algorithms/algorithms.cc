#include "plinth/comm/program/algorithms/algorithms.h"

#include <initializer_list>
#include <string>

#include "plinth/comm/program/algorithms/generators.h"
#include "plinth/hardware/base/check.h"

namespace plinth::comm {
namespace {

constexpr uint32_t Ops(std::initializer_list<OpKind> ops) {
  uint32_t bits = 0;
  for (const OpKind op : ops) bits |= 1u << static_cast<int>(op);
  return bits;
}

constexpr uint32_t kSums =
    Ops({OpKind::kAllReduce, OpKind::kReduceScatter, OpKind::kReduceScatterV});
constexpr uint32_t kGathers = Ops({OpKind::kAllGather, OpKind::kAllGatherV});
constexpr uint32_t kTrees = Ops({OpKind::kBroadcast, OpKind::kReduce});
// An all_to_all_v only where no rank passes on a block, of which it could not know the size.
constexpr uint32_t kToAll = Ops({OpKind::kAllToAll, OpKind::kAllToAllV});
constexpr uint32_t kEvery =
    kSums | kGathers | kTrees | kToAll | Ops({OpKind::kGather, OpKind::kScatter});

constexpr Algorithm kAlgorithms[] = {
    // name, generator, operations, pipelined, needs hosts
    {"mesh", GenerateMesh, kEvery, true, false},
    {"ring", GenerateRing, kSums | kGathers, false, false},
    {"chunked_ring", GenerateChunkedRing, kSums | kGathers | kTrees, true, false},
    {"halving_doubling", GenerateHalvingDoubling, kSums | kGathers, false, false},
    {"bruck", GenerateBruck, kGathers | Ops({OpKind::kAllToAll}), false, false},
    {"binomial", GenerateBinomial,
     kTrees | Ops({OpKind::kAllReduce, OpKind::kGather, OpKind::kScatter}), false, false},
    {"double_tree", GenerateDoubleTree, kTrees | Ops({OpKind::kAllReduce}), true, false},
    {"pairwise", GeneratePairwise, kToAll | Ops({OpKind::kReduceScatter, OpKind::kReduceScatterV}),
     false, false},
    {"hierarchical", GenerateHierarchical, kSums | kGathers | kTrees, true, true},
    {"nhr", GenerateNhr, kSums | kGathers | Ops({OpKind::kBroadcast, OpKind::kScatter}), false,
     false},
    {"nb", GenerateNb, kSums | kGathers | Ops({OpKind::kBroadcast, OpKind::kScatter}), false,
     false},
};

ProgramBuilder Generated(const Algorithm& algorithm, const Problem& problem) {
  CHECK(algorithm.Supports(problem.op))
      << std::string(algorithm.name) << " has no " << OpName(problem.op);
  ProgramBuilder builder(problem);
  algorithm.generate(builder);
  return builder;
}

}  // namespace

std::span<const Algorithm> Algorithms() { return kAlgorithms; }

const Algorithm* FindAlgorithm(std::string_view name) {
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

RankProgram GenerateProgram(const Algorithm& algorithm, const Problem& problem, int rank) {
  return Generated(algorithm, problem).Build(rank);
}

std::vector<RankProgram> GenerateAllPrograms(const Algorithm& algorithm, const Problem& problem) {
  return Generated(algorithm, problem).BuildAll();
}

}  // namespace plinth::comm
