#include "plinth/hardware/perf/pinned.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/probe/probe.h"

namespace plinth::perf {
namespace {

using Clock = std::chrono::steady_clock;

// One thread's part of a run; its own cache line, as all write at once.
struct alignas(128) Part {
  absl::Status pinned;
  Clock::time_point start;
  Clock::time_point end;
  int64_t wait_ns = 0;
};

// Holds threads until all are in place. kGo and kAbort are final.
class Gate {
 public:
  void Arrive() {
    arrived_.fetch_add(1);
    arrived_.notify_one();
  }
  void AwaitArrivals(int count) {
    for (int seen = arrived_.load(); seen < count; seen = arrived_.load()) arrived_.wait(seen);
  }
  void Open(bool go) {
    state_.store(go ? kGo : kAbort);
    state_.notify_all();
  }
  bool Wait() {
    state_.wait(kClosed);
    return state_.load() == kGo;
  }

 private:
  enum State { kClosed, kGo, kAbort };
  std::atomic<int> arrived_{0};
  std::atomic<int> state_{kClosed};
};

void RunPart(int cpu, int rank, const std::function<void(int)>& work, Gate* gate, Part* part) {
  part->pinned = PinThisThread({cpu});
  gate->Arrive();
  if (!gate->Wait()) return;
  const int64_t waited = RunQueueWaitNs();
  part->start = Clock::now();
  work(rank);
  part->end = Clock::now();
  part->wait_ns = RunQueueWaitNs() - waited;
}

absl::Status FirstError(const std::vector<Part>& parts) {
  for (const Part& part : parts) RETURN_IF_ERROR(part.pinned);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<probe::CpuList> ChooseCpus(int threads) {
  // An empty table: GPUs do not matter here, and asking for them may take a second.
  ASSIGN_OR_RETURN(const probe::MachineReport machine,
                   probe::Probe({.nvidia = probe::NvidiaTable{}}));
  const auto available = static_cast<int>(machine.usable.cpus.size());
  if (threads < 0 || threads > available) {
    return absl::InvalidArgumentError(absl::StrCat("threads: expected 0 to ", available, " (CPUs ",
                                                   probe::FormatCpuList(machine.usable.cpus),
                                                   "), got ", threads));
  }
  const int count = threads == 0 ? machine.usable.cpu_count : threads;
  return probe::CpuList(machine.usable.cpus.begin(), machine.usable.cpus.begin() + count);
}

absl::Status PinThisThread(const probe::CpuList& cpus) {
  CHECK(!cpus.empty());
  const int capacity = cpus.back() + 1;
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(CPU_ALLOC(capacity),
                                                              [](cpu_set_t* m) { CPU_FREE(m); });
  const size_t bytes = CPU_ALLOC_SIZE(capacity);
  CPU_ZERO_S(bytes, mask.get());
  for (const int cpu : cpus) CPU_SET_S(cpu, bytes, mask.get());
  if (sched_setaffinity(0, bytes, mask.get()) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "cannot pin to CPU " + probe::FormatCpuList(cpus));
}

int64_t RunQueueWaitNs() {
  std::FILE* file = std::fopen("/proc/thread-self/schedstat", "re");
  if (file == nullptr) return 0;
  long long running = 0, waiting = 0;
  const bool both = std::fscanf(file, "%lld %lld", &running, &waiting) == 2;
  std::fclose(file);
  return both ? waiting : 0;
}

bool IsDisturbed(int64_t wait_ns, double seconds) {
  return static_cast<double>(wait_ns) * 1e-9 >= 0.02 * seconds;
}

absl::StatusOr<PinnedRun> RunPinned(const probe::CpuList& cpus,
                                    const std::function<void(int rank)>& work) {
  CHECK(!cpus.empty());
  std::vector<Part> parts(cpus.size());
  std::vector<std::thread> threads;
  Gate gate;
  absl::Status status;
  try {
    for (size_t rank = 0; rank < cpus.size(); ++rank) {
      threads.emplace_back(RunPart, cpus[rank], static_cast<int>(rank), std::cref(work), &gate,
                           &parts[rank]);
    }
  } catch (const std::system_error& error) {
    status = absl::ResourceExhaustedError(absl::StrCat("cannot start thread ", threads.size(),
                                                       " of ", cpus.size(), ": ", error.what()));
  }
  gate.AwaitArrivals(static_cast<int>(threads.size()));
  if (status.ok()) status = FirstError(parts);
  gate.Open(status.ok());
  for (std::thread& thread : threads) thread.join();
  RETURN_IF_ERROR(status);

  Clock::time_point start = parts[0].start, end = parts[0].end;
  int64_t wait_ns = 0;
  for (const Part& part : parts) {
    start = std::min(start, part.start);
    end = std::max(end, part.end);
    wait_ns = std::max(wait_ns, part.wait_ns);
  }
  const double seconds = std::max(1e-9, std::chrono::duration<double>(end - start).count());
  return PinnedRun{seconds, IsDisturbed(wait_ns, seconds)};
}

}  // namespace plinth::perf
