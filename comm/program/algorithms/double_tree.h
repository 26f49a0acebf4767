// Two binary trees over the same ranks, each of which carries half of the vector.
#ifndef PLINTH_COMM_PROGRAM_ALGORITHMS_DOUBLE_TREE_H_
#define PLINTH_COMM_PROGRAM_ALGORITHMS_DOUBLE_TREE_H_

#include <array>
#include <vector>

namespace plinth::comm {

// A tree over 0 .. n-1, balanced and in order: what is below a node on its left is smaller.
struct BinaryTree {
  std::vector<int> parent;  // -1: the root
  std::vector<int> depth;   // of the root: 0
  int root = 0;
  int levels = 0;  // the greatest depth

  bool IsLeaf(int node) const;
};

// In the first, the even nodes are leaves and the odd ones are not; the second is the first with
// every node moved on by one, so that its leaves are the odd nodes (and the last, if n is odd).
// So every node is a leaf of one tree, and works for others in at most one.
std::array<BinaryTree, 2> DoubleBinaryTree(int n);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_PROGRAM_ALGORITHMS_DOUBLE_TREE_H_
