#include "plinth/storage/dataset/permutation.h"

#include <bit>

#include "plinth/hardware/base/check.h"

namespace plinth::storage {
namespace {

// SplitMix64's finalizer: every input bit reaches every output bit.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

Permutation::Permutation(uint64_t n, uint64_t seed, uint64_t stream) : n_(n) {
  CHECK_GE(n, 1u);
  half_bits_ = (std::bit_width(n - 1) + 1) / 2;
  constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
  uint64_t key = Mix(Mix(seed + kGolden) ^ (stream + kGolden));
  for (uint64_t& round : keys_) round = Mix(key += kGolden);
}

uint64_t Permutation::operator()(uint64_t i) const {
  DCHECK_LT(i, n_);
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  do {
    uint64_t left = i >> half_bits_, right = i & mask;
    for (const uint64_t key : keys_) {
      const uint64_t next = left ^ (Mix(right ^ key) & mask);
      left = right;
      right = next;
    }
    i = left << half_bits_ | right;
  } while (i >= n_);
  return i;
}

}  // namespace plinth::storage
