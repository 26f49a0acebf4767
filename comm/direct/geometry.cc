#include "plinth/comm/direct/geometry.h"

#include <algorithm>

#include "plinth/comm/executor/block_layout.h"
#include "plinth/comm/program/problem.h"
#include "plinth/hardware/base/check.h"

namespace plinth::comm {
namespace {

Problem ProblemOf(const CollectiveCall& call, int size) {
  return {.op = call.print.op, .size = size, .root = call.print.root};
}

// Vectors go whole here, not in parts that ranks share.
BlockLayout LayoutOf(const CollectiveCall& call, int size) { return BlockLayout(call, size, 1); }

}  // namespace

Share ShareOf(int64_t bytes, int rank, int size) {
  constexpr int64_t kLineBytes = 64;
  const int64_t lines = (bytes + kLineBytes - 1) / kLineBytes;
  const int64_t each = (lines + size - 1) / size * kLineBytes;
  const int64_t begin = std::min(bytes, rank * each);
  return {begin, std::min(each, bytes - begin)};
}

int64_t LongestBytes(const CollectiveCall& call, int size) {
  return LayoutOf(call, size).MostCount() * DTypeSize(call.print.dtype);
}

void FillGeometry(const CollectiveCall& call, int rank, int size, Geometry& geometry) {
  CHECK(HasProgram(call.print.op)) << "not an operation that moves data";
  const Problem problem = ProblemOf(call, size);
  const BlockLayout layout = LayoutOf(call, size);
  const int64_t width = DTypeSize(call.print.dtype);
  const auto between = [&](int source, int taker) -> Take {
    const int32_t block = BlockBetween(problem, source, taker);
    if (!HasInput(problem, source, block) || !HasOutput(problem, taker, block)) return {};
    return {layout.InputOffset(source, block) * width, layout.OutputOffset(taker, block) * width,
            layout.Count(block) * width};
  };
  geometry.combines = IsReduction(call.print.op);
  geometry.same_for_all = BlockBetween(problem, 0, 0) == BlockBetween(problem, 0, size - 1);
  geometry.longest = LongestBytes(call, size);
  geometry.takes.resize(size);
  geometry.gives.resize(size);
  for (int peer = 0; peer < size; ++peer) {
    geometry.takes[peer] = between(peer, rank);
    geometry.gives[peer] = between(rank, peer);
  }
}

int64_t MostInputBytes(const CollectiveCall& call, int size) {
  if (call.print.op == OpKind::kAllGatherV || call.print.op == OpKind::kAllToAllV) return -1;
  const BlockLayout layout = LayoutOf(call, size);
  // Blocks lie in order, so the input ends with the last one.
  const int last = BlocksOf(ProblemOf(call, size)) == 0 ? 0 : size - 1;
  return (layout.InputOffset(0, last) + layout.Count(last)) * DTypeSize(call.print.dtype);
}

}  // namespace plinth::comm
