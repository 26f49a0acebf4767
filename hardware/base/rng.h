// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011).
//
// A draw is a pure function of (key, counter). Keys name *what* is drawn (seed and purpose),
// counters *which one* (step, sample, position), never a rank or a thread, so any layout
// and any resumed run draws the same numbers.
#ifndef PLINTH_HARDWARE_BASE_RNG_H_
#define PLINTH_HARDWARE_BASE_RNG_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace plinth {

// The four 32-bit words of one Philox4x32-10 block.
std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// A key for one purpose ("init/layers.0.attention.q.weight", "shuffle") under a run's seed.
uint64_t RngKey(uint64_t seed, std::string_view purpose);

// Draw number `index` of stream `stream` under `key`. Thread-safe: no state.
uint64_t RandomBits(uint64_t key, uint64_t stream, uint64_t index);
// Uniform in [0, 1) with 53 bits.
double RandomUniform(uint64_t key, uint64_t stream, uint64_t index);
// Standard normal (Box-Muller, one value per draw).
double RandomNormal(uint64_t key, uint64_t stream, uint64_t index);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_BASE_RNG_H_
