// Bruck's algorithms: ceil(log2 n) rounds for any n, for short blocks.
//
// J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient algorithms for all-to-all
// communications in multiport message-passing systems, IEEE Trans. Parallel Distrib. Syst. 8
// (1997). The rotations that the paper does before and after are only renumbering: here every block
// carries its number.
#include <algorithm>

#include "plinth/comm/program/algorithms/generators.h"

namespace plinth::comm {
namespace {

// After round k each rank has its own block and the 2^(k+1) - 1 that follow.
void AllGather(ProgramBuilder& bruck) {
  const int n = bruck.size();
  for (int round = 0, reach = 1; reach < n; ++round, reach *= 2) {
    const int count = std::min(reach, n - reach);
    for (int r = 0; r < n; ++r) {
      for (int i = 0; i < count; ++i) bruck.Send(round, r, (r + n - reach) % n, (r + i) % n);
    }
  }
}

// A block that has `distance` to go makes a jump of 2^k in round k if that bit of it is set.
void AllToAll(ProgramBuilder& bruck) {
  const int n = bruck.size();
  for (int round = 0, reach = 1; reach < n; ++round, reach *= 2) {
    for (int from = 0; from < n; ++from) {
      for (int distance = reach; distance < n; ++distance) {
        if ((distance & reach) == 0) continue;
        const int holder = (from + distance % reach) % n;
        bruck.Send(round, holder, (holder + reach) % n, from * n + (from + distance) % n);
      }
    }
  }
}

}  // namespace

void GenerateBruck(ProgramBuilder& bruck) {
  if (PlainOp(bruck.problem().op) == OpKind::kAllGather) return AllGather(bruck);
  AllToAll(bruck);
}

}  // namespace plinth::comm
