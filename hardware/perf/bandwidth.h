// Memory bandwidth as this machine gives it now: the limit that memory-bound work is judged by.
//
// On a shared machine bandwidth changes from one second to the next, so a benchmark measures it
// right before and right after its own loop, with one probe kept for both:
//
//   ASSIGN_OR_RETURN(auto probe, perf::MemoryProbe::Create({.threads = 2}));
//   ASSIGN_OR_RETURN(const perf::BandwidthResult before, probe->Read());
//   ... timed work ...
//   ASSIGN_OR_RETURN(const perf::BandwidthResult after, probe->Read());
#ifndef PLINTH_HARDWARE_PERF_BANDWIDTH_H_
#define PLINTH_HARDWARE_PERF_BANDWIDTH_H_

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/hardware/probe/cpu_list.h"

namespace plinth::perf {

struct BandwidthOptions {
  int threads = 0;      // each pinned to a CPU of its own; 0: as many as the limits feed
  uint64_t bytes = 0;   // buffer of all threads; 0: 4 times the last-level caches, >= 256 MiB
  int repetitions = 9;  // each passes over the whole buffer once; >= 1
};

// Giga (1e9) bytes per second. Copying counts the bytes read plus the bytes written.
struct BandwidthResult {
  double median_gbps = 0;
  double best_gbps = 0;
  int threads = 0;
  uint64_t bytes = 0;
  int samples = 0;
  int disturbed = 0;  // samples in which our threads had to wait for a CPU (see samples.h)
};

// A buffer far larger than the caches, each thread's part touched first by that thread (so that
// it lies in its NUMA node), in huge pages where the system grants them. Not thread-safe.
class MemoryProbe {
 public:
  // Errors: kInvalidArgument for options out of range; kResourceExhausted when the buffer does
  // not fit in half of the available memory; those of probe::Probe. Cost: touches the buffer.
  static absl::StatusOr<std::unique_ptr<MemoryProbe>> Create(const BandwidthOptions& options);
  ~MemoryProbe();
  MemoryProbe(const MemoryProbe&) = delete;
  MemoryProbe& operator=(const MemoryProbe&) = delete;

  // Reads the buffer. One pass to warm up, then the repetitions.
  absl::StatusOr<BandwidthResult> Read();
  // Copies half of each thread's part to the other half, past the caches.
  absl::StatusOr<BandwidthResult> Copy();

 private:
  MemoryProbe(probe::CpuList cpus, uint64_t* words, uint64_t words_per_thread, int repetitions)
      : cpus_(std::move(cpus)),
        words_(words),
        words_per_thread_(words_per_thread),
        repetitions_(repetitions) {}
  absl::Status Touch();
  std::span<uint64_t> Part(int rank) const;
  template <typename Work>
  absl::StatusOr<BandwidthResult> Measure(const Work& work);
  uint64_t bytes() const { return words_per_thread_ * cpus_.size() * sizeof(uint64_t); }

  const probe::CpuList cpus_;
  uint64_t* const words_;  // mapped; ours
  const uint64_t words_per_thread_;
  const int repetitions_;
};

// MemoryProbe, used once.
absl::StatusOr<BandwidthResult> MeasureReadBandwidth(const BandwidthOptions& options);
absl::StatusOr<BandwidthResult> MeasureCopyBandwidth(const BandwidthOptions& options);

}  // namespace plinth::perf

#endif  // PLINTH_HARDWARE_PERF_BANDWIDTH_H_
