// A pseudo-random order of [0, n) that can be entered anywhere: nothing is shuffled or stored.
#ifndef PLINTH_STORAGE_DATASET_PERMUTATION_H_
#define PLINTH_STORAGE_DATASET_PERMUTATION_H_

#include <array>
#include <cstdint>

namespace plinth::storage {

// A bijection of [0, n) chosen by a key: a Feistel network over the next even number of
// bits, walked until it falls inside [0, n) (fewer than four steps on average, as the domain
// is less than four times n).
// Stable: a change would reorder the data of resumed runs.
// Threads  re-entrant.
class Permutation {
 public:
  // Requires n >= 1. (seed, stream) is the key: here a run's seed and the epoch.
  Permutation(uint64_t n, uint64_t seed, uint64_t stream);

  // Requires i < n.
  uint64_t operator()(uint64_t i) const;

 private:
  static constexpr int kRounds = 6;

  uint64_t n_;
  int half_bits_;
  std::array<uint64_t, kRounds> keys_;
};

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_DATASET_PERMUTATION_H_
