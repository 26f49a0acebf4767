// What shared memory gives for an all-reduce without a library: the yardstick for ours.
#ifndef PLINTH_COMM_BENCH_PROBE_H_
#define PLINTH_COMM_BENCH_PROBE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace plinth::comm {

// Two threads sum two f32 vectors that both see, each its half, straight into both: the least
// that an in-place all_reduce between two ranks of a host has to move when nothing is copied.
// The memory is of the kind that processes share, so pages and their faults are alike. Used by
// one thread; the other rank has to sleep meanwhile.
class SharedMemoryProbe {
 public:
  // For vectors of up to `most_bytes`. kResourceExhausted when there is no such memory.
  static absl::StatusOr<std::unique_ptr<SharedMemoryProbe>> Create(int64_t most_bytes);
  ~SharedMemoryProbe();
  SharedMemoryProbe(const SharedMemoryProbe&) = delete;
  SharedMemoryProbe& operator=(const SharedMemoryProbe&) = delete;

  // Bus bandwidth in GB/s for vectors of `bytes`, of the faster of two ways to write: through the
  // caches or past them. Takes about twice `length`. CHECKs bytes <= most_bytes.
  double BusBandwidth(int64_t bytes, absl::Duration length);

 private:
  SharedMemoryProbe(std::byte* memory, int64_t vector_bytes)
      : memory_(memory), vector_bytes_(vector_bytes) {}

  std::byte* const memory_;  // two vectors
  const int64_t vector_bytes_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_PROBE_H_
