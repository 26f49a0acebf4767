// NHR, the non-uniform hierarchical ring.
//
// Huawei's HCCL (user guide, "NHR"; sources of its reduce_scatter, all_gather and scatter). Rings
// of stride 1, 2, 4, ...: in round k of a reduce_scatter, rank r sends to r - 2^k the blocks of the
// ranks at r - 2^k, r - 3 * 2^k, r - 5 * 2^k, ...: each block is summed up a tree of its own.
// An all_gather goes back on these trees, the longest stride first. ceil(log2 n) rounds and n - 1
// blocks for any n. all_reduce = reduce_scatter + all_gather, broadcast = scatter + all_gather.
// (HCCL also renumbers blocks so that those of one round are neighbours in memory; that changes
// nothing of who sends when, and is left out.)
#include "plinth/comm/program/algorithms/generators.h"
#include "plinth/comm/program/algorithms/offset_trees.h"

namespace plinth::comm {
namespace {

// The trees of SumOffsetTrees(-1), from their roots down.
void AllGather(ProgramBuilder& nhr, bool after_scatter) {
  const int n = nhr.size();
  int reach = 1;
  while (reach * 2 < n) reach *= 2;
  for (int round = nhr.next_round(); reach > 0; ++round, reach /= 2) {
    for (int r = 0; r < n; ++r) {
      const int to = (r + reach) % n;
      for (int distance = 0; distance + reach < n; distance += 2 * reach) {
        const int block = (r - distance + n) % n;
        if (after_scatter && ScatterPasses(nhr, -1, to, block)) continue;
        nhr.Send(round, r, to, block);
      }
    }
  }
}

}  // namespace

void GenerateNhr(ProgramBuilder& nhr) {
  nhr.CutInto(nhr.size());
  const OpKind op = PlainOp(nhr.problem().op);
  const bool rooted = op == OpKind::kBroadcast || op == OpKind::kScatter;
  if (rooted) ScatterOffsetTree(nhr, -1);
  if (IsReduction(op)) SumOffsetTrees(nhr, -1);
  if (op == OpKind::kAllReduce || op == OpKind::kAllGather || op == OpKind::kBroadcast) {
    AllGather(nhr, rooted);
  }
}

}  // namespace plinth::comm
