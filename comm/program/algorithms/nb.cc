// NB, the non-uniform Bruck algorithm.
//
// Huawei's HCCL (user guide, "NB"; sources of its reduce_scatter, all_gather and scatter). In round
// k of an all_gather, rank r sends to r + 2^k the 2^k blocks that end with its own, and in the last
// round only as many as are missing. In round k of a reduce_scatter it sends to r + 2^k the sums
// for the ranks at r + 2^k, r + 3 * 2^k, r + 5 * 2^k, ... ceil(log2 n) rounds and n - 1 blocks for
// any n. all_reduce = reduce_scatter + all_gather, broadcast = scatter + all_gather.
#include <algorithm>

#include "plinth/comm/program/algorithms/generators.h"
#include "plinth/comm/program/algorithms/offset_trees.h"

namespace plinth::comm {
namespace {

void AllGather(ProgramBuilder& nb, bool after_scatter) {
  const int n = nb.size();
  for (int round = nb.next_round(), reach = 1; reach < n; ++round, reach *= 2) {
    const int count = std::min(reach, n - reach);
    for (int r = 0; r < n; ++r) {
      const int to = (r + reach) % n;
      for (int i = 0; i < count; ++i) {
        const int block = (r - i + n) % n;
        if (after_scatter && ScatterPasses(nb, 1, to, block)) continue;
        nb.Send(round, r, to, block);
      }
    }
  }
}

}  // namespace

void GenerateNb(ProgramBuilder& nb) {
  nb.CutInto(nb.size());
  const OpKind op = PlainOp(nb.problem().op);
  const bool rooted = op == OpKind::kBroadcast || op == OpKind::kScatter;
  if (rooted) ScatterOffsetTree(nb, 1);
  if (IsReduction(op)) SumOffsetTrees(nb, 1);
  if (op == OpKind::kAllReduce || op == OpKind::kAllGather || op == OpKind::kBroadcast) {
    AllGather(nb, rooted);
  }
}

}  // namespace plinth::comm
