// How a long vector goes through a program piece by piece.
//
// Every block is cut into `slices` parts; slice s is the s-th part of every block, and each slice
// runs the whole program by itself. All ranks walk the same steps:
//
//   pipelined       step t works on round t - s of every slice s for which there is one,
//                   so slice 1 is in round 0 while slice 0 is in round 1
//   one by one      step t works on round t % rounds of slice t / rounds
//
// In one step a rank makes one exchange that holds the sends and receives of its slices, the
// lowest slice first and each slice's in the order of its round (equal on both ends, as one
// peer's bytes match in order), and then the computations in the same order.
// Slice s keeps its scratch slots in set s % in_flight(): no two slices in flight share one.
#ifndef PLINTH_COMM_PROGRAM_SLICE_H_
#define PLINTH_COMM_PROGRAM_SLICE_H_

#include <algorithm>
#include <cstdint>

namespace plinth::comm {

// Elements (or bytes) [begin, begin + count).
struct Range {
  int64_t begin = 0;
  int64_t count = 0;

  bool operator==(const Range&) const = default;
};

// Part `index` of `parts`: contiguous, in order, lengths differ by at most one, longer ones first.
inline Range PartOf(const Range& whole, int64_t parts, int64_t index) {
  const int64_t length = whole.count / parts;
  const int64_t longer = whole.count % parts;
  return {whole.begin + index * length + std::min(index, longer),
          length + (index < longer ? 1 : 0)};
}

struct Schedule {
  int rounds = 0;  // of the program
  int slices = 1;  // at least 1
  bool pipelined = false;

  int steps() const {
    if (rounds == 0) return 0;
    return pipelined ? rounds + slices - 1 : rounds * slices;
  }
  // Slices that are in work at once, at most.
  int in_flight() const { return pipelined ? std::max(1, std::min(slices, rounds)) : 1; }

  // Calls visit(slice, round) for all that step `step` works on.
  template <typename Visit>
  void ForEach(int step, const Visit& visit) const {
    if (!pipelined) {
      visit(step / rounds, step % rounds);
      return;
    }
    const int last = std::min(step, slices - 1);
    for (int slice = std::max(0, step - rounds + 1); slice <= last; ++slice) {
      visit(slice, step - slice);
    }
  }
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_PROGRAM_SLICE_H_
