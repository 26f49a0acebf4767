// Ring: each rank r only ever sends to r + 1.
//
// P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations,
// J. Parallel Distrib. Comput. 69 (2009). In the first n-1 rounds block b is summed on its way from
// rank b+1 round to rank b; in the other n-1 the sums go round. Each rank sends 2 (n-1)/n of the
// vector, the least possible, in 2 (n-1) rounds.
//
// The chunked ring does the same in slices that follow each other, as NCCL does; rooted operations
// then need no more than one way along the ring: a broadcast passes each slice on from the root, a
// reduce sums each on its way to the root.
#include "plinth/comm/program/algorithms/generators.h"

namespace plinth::comm {
namespace {

void SumsGoRound(ProgramBuilder& ring, int round) {
  const int n = ring.size();
  for (int step = 1; step < n; ++step, ++round) {
    for (int r = 0; r < n; ++r) ring.Send(round, r, (r + 1) % n, (r - step + n) % n);
  }
}

void BlocksGoRound(ProgramBuilder& ring, int round) {
  const int n = ring.size();
  for (int step = 0; step < n - 1; ++step, ++round) {
    for (int r = 0; r < n; ++r) ring.Send(round, r, (r + 1) % n, (r - step + n) % n);
  }
}

}  // namespace

void GenerateRing(ProgramBuilder& ring) {
  ring.CutInto(ring.size());
  const OpKind op = PlainOp(ring.problem().op);
  if (op != OpKind::kAllGather) SumsGoRound(ring, 0);
  if (op != OpKind::kReduceScatter) BlocksGoRound(ring, ring.next_round());
}

void GenerateChunkedRing(ProgramBuilder& ring) {
  const OpKind op = ring.problem().op;
  if (!HasRoot(op)) return GenerateRing(ring);
  const int n = ring.size();
  const int root = ring.problem().root;
  const int first = op == OpKind::kBroadcast ? root : root + 1;
  for (int step = 0; step < n - 1; ++step) {
    ring.Send(step, (first + step) % n, (first + step + 1) % n, 0);
  }
}

}  // namespace plinth::comm
