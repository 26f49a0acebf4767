// The links of the binomial tree over n ranks that are counted from its root, rank 0.
//
// Rank d serves d + 2^k, the highest k first, if d is a multiple of 2^(k+1):
//   n = 6   round 0: 0-4    round 1: 0-2    round 2: 0-1 2-3 4-5
#ifndef PLINTH_COMM_PROGRAM_ALGORITHMS_BINOMIAL_LINKS_H_
#define PLINTH_COMM_PROGRAM_ALGORITHMS_BINOMIAL_LINKS_H_

#include <algorithm>

namespace plinth::comm {

inline int BinomialLevels(int n) {
  int levels = 0;
  while ((1 << levels) < n) ++levels;
  return levels;
}

// Calls visit(round, parent, child) for every link, from the root down.
template <typename Visit>
void BinomialLinks(int n, const Visit& visit) {
  const int levels = BinomialLevels(n);
  for (int round = 0; round < levels; ++round) {
    const int reach = 1 << (levels - 1 - round);
    for (int parent = 0; parent + reach < n; parent += 2 * reach) {
      visit(round, parent, parent + reach);
    }
  }
}

// How many ranks there are from `child` down: child, child + 1, ...
inline int BinomialSubtree(int n, int parent, int child) {
  return std::min(child - parent, n - child);
}

}  // namespace plinth::comm

#endif  // PLINTH_COMM_PROGRAM_ALGORITHMS_BINOMIAL_LINKS_H_
