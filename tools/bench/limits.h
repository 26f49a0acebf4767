// What this machine gives at this moment, for a benchmark to be judged by.
#ifndef PLINTH_TOOLS_BENCH_LIMITS_H_
#define PLINTH_TOOLS_BENCH_LIMITS_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "plinth/hardware/perf/bandwidth.h"

namespace plinth::tools {

// Asked right before and right after timed work: on a shared machine both figures change within
// seconds. Holds the probe's buffer. Not thread-safe.
class LimitProbe {
 public:
  // `bytes` is the size of the memory probe; 0: far larger than the caches, as a figure needs.
  static absl::StatusOr<LimitProbe> Create(int threads, uint64_t bytes);

  // Memory read by all threads, GB/s. Some 50 ms.
  absl::StatusOr<double> ReadGbps();
  // f32 multiply-adds in registers, GFLOP/s. Some 100 ms.
  absl::StatusOr<double> FmaGflops();
  // A sample of either was taken while other programs used our CPUs.
  bool disturbed() const { return disturbed_; }

 private:
  LimitProbe(int threads, std::unique_ptr<perf::MemoryProbe> memory)
      : threads_(threads), memory_(std::move(memory)) {}

  int threads_;
  std::unique_ptr<perf::MemoryProbe> memory_;
  bool disturbed_ = false;
};

}  // namespace plinth::tools

#endif  // PLINTH_TOOLS_BENCH_LIMITS_H_
