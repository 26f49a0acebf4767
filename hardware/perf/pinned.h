// Threads of one measurement, each on a CPU of its own.
#ifndef PLINTH_HARDWARE_PERF_PINNED_H_
#define PLINTH_HARDWARE_PERF_PINNED_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/hardware/probe/cpu_list.h"

namespace plinth::perf {

// The first `threads` CPUs that this process may use; 0 means as many as its limits feed.
// Errors: kInvalidArgument when there are fewer, and those of probe::Probe.
absl::StatusOr<probe::CpuList> ChooseCpus(int threads);

// Lets the calling thread run on `cpus` only. Errors: what the system says, naming them.
absl::Status PinThisThread(const probe::CpuList& cpus);

// Nanoseconds that the calling thread has stood in the run queue so far; 0 when the kernel
// does not count them.
int64_t RunQueueWaitNs();

// Whether waiting that long makes a measurement of that length worthless (2 % or more).
bool IsDisturbed(int64_t wait_ns, double seconds);

struct PinnedRun {
  double seconds = 0;  // from the first start to the last end
  bool disturbed = false;
};

// Calls work(rank) on one new thread per CPU, rank i pinned to cpus[i]; all start together once
// each is in place. Returns when all are done. `work` must not throw.
// Errors: kResourceExhausted when a thread cannot be made, else those of PinThisThread; `work`
// has not been called then.
absl::StatusOr<PinnedRun> RunPinned(const probe::CpuList& cpus,
                                    const std::function<void(int rank)>& work);

}  // namespace plinth::perf

#endif  // PLINTH_HARDWARE_PERF_PINNED_H_
