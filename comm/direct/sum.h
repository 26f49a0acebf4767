// Sums of f32 at the speed of memory: one pass, vectors as wide as the processor has.
#ifndef PLINTH_COMM_DIRECT_SUM_H_
#define PLINTH_COMM_DIRECT_SUM_H_

#include <cstdint>
#include <span>

namespace plinth::comm {

inline constexpr int64_t kSumElements = 16;

// targets[t][i] = (sources[0][i] + sources[1][i] + ...), from left to right, then divided by
// `divisor` unless that is 1: the bits of Reduce. `count` is a multiple of kSumElements. `stream`
// stores past the caches, for which all targets are aligned to 64 bytes. A target may be one of
// the sources. False, with nothing done, where the processor has no wide vectors.
bool SumWide(std::span<const void* const> sources, int64_t count, int divisor,
             std::span<void* const> targets, bool stream);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_DIRECT_SUM_H_
