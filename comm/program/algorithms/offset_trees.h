// Trees on ranks in a circle that look the same from everywhere, the common ground of NHR and NB.
//
// A block that has `distance` to go along the circle makes one jump of 2^k for each bit k that is
// set in `distance`, the lowest first. All blocks of all ranks travel at once: ceil(log2 n) rounds
// and n - 1 blocks sent by each rank, for any n. `direction` is +1 or -1: the way of the jumps.
#ifndef PLINTH_COMM_PROGRAM_ALGORITHMS_OFFSET_TREES_H_
#define PLINTH_COMM_PROGRAM_ALGORITHMS_OFFSET_TREES_H_

#include <bit>

#include "plinth/comm/program/builder.h"

namespace plinth::comm {

// The rank `distance` further on.
inline int Along(const ProgramBuilder& builder, int rank, int direction, int distance) {
  const int n = builder.size();
  return (rank + direction * (distance % n) + n) % n;
}

// Everyone's block b to rank b, summed where ways join.
inline void SumOffsetTrees(ProgramBuilder& builder, int direction) {
  const int n = builder.size();
  for (int round = builder.next_round(), reach = 1; reach < n; ++round, reach *= 2) {
    for (int r = 0; r < n; ++r) {
      const int next = Along(builder, r, direction, reach);
      for (int distance = reach; distance < n; distance += 2 * reach) {
        builder.Send(round, r, next, Along(builder, r, direction, distance));
      }
    }
  }
}

// The root's block b to rank b.
inline void ScatterOffsetTree(ProgramBuilder& builder, int direction) {
  const int n = builder.size();
  const int root = builder.problem().root;
  for (int round = builder.next_round(), reach = 1; reach < n; ++round, reach *= 2) {
    for (int at = 0; at < reach && at + reach < n; ++at) {
      for (int distance = at + reach; distance < n; distance += 2 * reach) {
        builder.Send(round, Along(builder, root, direction, at),
                     Along(builder, root, direction, at + reach),
                     Along(builder, root, direction, distance));
      }
    }
  }
}

// How far `rank` is from `origin` along the circle.
inline int Distance(const ProgramBuilder& builder, int origin, int direction, int rank) {
  return Along(builder, 0, direction, builder.size() + rank - origin);
}

// Whether in that scatter block `block` passed through `rank`, or ended there.
inline bool ScatterPasses(const ProgramBuilder& builder, int direction, int rank, int block) {
  const int root = builder.problem().root;
  const unsigned at = Distance(builder, root, direction, rank);
  const unsigned distance = Distance(builder, root, direction, block);
  return (distance & (std::bit_ceil(at + 1) - 1)) == at;
}

}  // namespace plinth::comm

#endif  // PLINTH_COMM_PROGRAM_ALGORITHMS_OFFSET_TREES_H_
