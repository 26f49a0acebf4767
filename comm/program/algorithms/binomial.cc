// Binomial trees: ceil(log2 n) rounds, for vectors so short that only the rounds count.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in
// MPICH, Int. J. High Perform. Comput. Appl. 19 (2005). A broadcast goes down the links of the tree
// (binomial_links.h), a reduce up; gather and scatter carry over each link the blocks of the ranks
// below it. An all_reduce is a reduce to rank 0 and a broadcast.
#include "plinth/comm/program/algorithms/binomial_links.h"
#include "plinth/comm/program/algorithms/generators.h"

namespace plinth::comm {
void GenerateBinomial(ProgramBuilder& tree) {
  const int n = tree.size();
  const OpKind op = tree.problem().op;
  const int root = HasRoot(op) ? tree.problem().root : 0;
  const auto rank_at = [&](int distance) { return (root + distance) % n; };
  const int last_up = BinomialLevels(n) - 1;

  const bool goes_up = op == OpKind::kAllReduce || op == OpKind::kReduce || op == OpKind::kGather;
  if (goes_up) {
    BinomialLinks(n, [&](int round, int parent, int child) {
      const int count = op == OpKind::kGather ? BinomialSubtree(n, parent, child) : 1;
      for (int i = 0; i < count; ++i) {
        const int block = op == OpKind::kGather ? rank_at(child + i) : 0;
        tree.Send(last_up - round, rank_at(child), rank_at(parent), block);
      }
    });
  }
  if (op == OpKind::kReduce || op == OpKind::kGather) return;
  const int first_down = tree.next_round();
  BinomialLinks(n, [&](int round, int parent, int child) {
    const int count = op == OpKind::kScatter ? BinomialSubtree(n, parent, child) : 1;
    for (int i = 0; i < count; ++i) {
      const int block = op == OpKind::kScatter ? rank_at(child + i) : 0;
      tree.Send(first_down + round, rank_at(parent), rank_at(child), block);
    }
  });
}

}  // namespace plinth::comm
