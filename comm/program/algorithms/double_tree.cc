// Double binary tree: logarithmic rounds and full bandwidth at once, for slices that follow each
// other.
//
// P. Sanders, J. Speck, J. L. Traff: Two-tree algorithms for full bandwidth broadcast, reduction
// and scan, Parallel Computing 35 (2009); the shape of NCCL's "tree" all_reduce. In one binary tree
// the leaves only receive (or only send) and half of the bandwidth is idle; with a second tree in
// which they are the inner nodes, every rank works for both halves of the vector.
// Block t takes tree t. The root of a broadcast or reduce feeds both trees, made of the others.
#include "plinth/comm/program/algorithms/double_tree.h"

#include <algorithm>

#include "plinth/comm/program/algorithms/generators.h"

namespace plinth::comm {
namespace {

// Nodes begin .. end-1 below `parent`; `begin` is a leaf, and so is every second node after it.
void Grow(int begin, int end, int parent, int depth, BinaryTree& tree) {
  if (begin >= end) return;
  int middle = begin;
  if (end - begin > 1) middle += ((end - begin) / 2 - 1) | 1;
  tree.parent[middle] = parent;
  tree.depth[middle] = depth;
  tree.levels = std::max(tree.levels, depth);
  if (parent < 0) tree.root = middle;
  Grow(begin, middle, middle, depth + 1, tree);
  Grow(middle + 1, end, middle, depth + 1, tree);
}

// The rank at each node of the trees: all ranks in order, or all but the root from there on.
std::vector<int> RanksOf(const Problem& problem) {
  std::vector<int> ranks;
  const int first = HasRoot(problem.op) ? problem.root + 1 : 0;
  const int count = HasRoot(problem.op) ? problem.size - 1 : problem.size;
  for (int i = 0; i < count; ++i) ranks.push_back((first + i) % problem.size);
  return ranks;
}

}  // namespace

bool BinaryTree::IsLeaf(int node) const {
  return std::find(parent.begin(), parent.end(), node) == parent.end();
}

std::array<BinaryTree, 2> DoubleBinaryTree(int n) {
  BinaryTree first;
  first.parent.resize(n);
  first.depth.resize(n);
  Grow(0, n, -1, 0, first);
  BinaryTree second = first;
  const auto moved = [n](int node) { return (node + n - 1) % n; };
  for (int node = 0; node < n; ++node) {
    const int parent = first.parent[node];
    second.parent[moved(node)] = parent < 0 ? -1 : moved(parent);
    second.depth[moved(node)] = first.depth[node];
  }
  second.root = moved(first.root);
  return {first, second};
}

void GenerateDoubleTree(ProgramBuilder& builder) {
  const Problem& problem = builder.problem();
  builder.CutInto(2);
  const std::vector<int> ranks = RanksOf(problem);
  if (ranks.empty()) return;
  const std::array<BinaryTree, 2> trees = DoubleBinaryTree(static_cast<int>(ranks.size()));
  // Rooted: one link more, between the root and the top of each tree.
  const int top = HasRoot(problem.op) ? 1 : 0;
  const int up_rounds = problem.op == OpKind::kBroadcast ? 0 : trees[0].levels + top;
  for (int block = 0; block < 2; ++block) {
    const BinaryTree& tree = trees[block];
    for (size_t node = 0; node < ranks.size(); ++node) {
      const bool at_top = tree.parent[node] < 0;
      if (at_top && top == 0) continue;
      const int above = at_top ? problem.root : ranks[tree.parent[node]];
      const int links = tree.depth[node] + top;  // to the very top; at least 1
      if (up_rounds > 0) builder.Send(up_rounds - links, ranks[node], above, block);
      if (problem.op != OpKind::kReduce) {
        builder.Send(up_rounds + links - 1, above, ranks[node], block);
      }
    }
  }
}

}  // namespace plinth::comm
