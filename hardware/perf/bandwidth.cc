#include "plinth/hardware/perf/bandwidth.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/perf/kernels.h"
#include "plinth/hardware/perf/pinned.h"
#include "plinth/hardware/perf/samples.h"
#include "plinth/hardware/probe/probe.h"

namespace plinth::perf {
namespace {

constexpr uint64_t kMinAutoBytes = uint64_t{256} << 20;
// Two blocks per thread at least: copying needs two halves.
constexpr uint64_t kMinBytesPerThread = 2 * kBlockBytes;

// How large the buffer is to be, checked against what is free now.
absl::StatusOr<uint64_t> BufferBytes(uint64_t requested) {
  ASSIGN_OR_RETURN(const probe::MachineReport machine,
                   probe::Probe({.nvidia = probe::NvidiaTable{}}));
  const uint64_t wanted = requested > 0
                              ? requested
                              : std::max(kMinAutoBytes, 4 * machine.topology.LastLevelCacheBytes());
  const uint64_t available = machine.usable.memory_available_bytes.value_or(2 * wanted);
  if (wanted > available / 2) {
    return absl::ResourceExhaustedError(
        absl::StrCat("bandwidth buffer: expected at most half of the available ", available,
                     " bytes, got ", wanted, "; ask for fewer bytes"));
  }
  return wanted;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MemoryProbe>> MemoryProbe::Create(const BandwidthOptions& options) {
  if (options.repetitions < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("repetitions: expected at least 1, got ", options.repetitions));
  }
  ASSIGN_OR_RETURN(probe::CpuList cpus, ChooseCpus(options.threads));
  ASSIGN_OR_RETURN(const uint64_t wanted, BufferBytes(options.bytes));
  const uint64_t per_thread = wanted / cpus.size() / kMinBytesPerThread * kMinBytesPerThread;
  if (per_thread == 0) {
    return absl::InvalidArgumentError(absl::StrCat("bytes: expected at least ", kMinBytesPerThread,
                                                   " for each of ", cpus.size(), " threads, got ",
                                                   wanted));
  }
  const uint64_t bytes = per_thread * cpus.size();
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return absl::ErrnoToStatus(errno, absl::StrCat("mmap of ", bytes));
  madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: small pages only cost some bandwidth
  std::unique_ptr<MemoryProbe> probe(
      new MemoryProbe(std::move(cpus), static_cast<uint64_t*>(memory),
                      per_thread / sizeof(uint64_t), options.repetitions));
  RETURN_IF_ERROR(probe->Touch());
  return probe;
}

MemoryProbe::~MemoryProbe() { munmap(words_, bytes()); }

std::span<uint64_t> MemoryProbe::Part(int rank) const {
  return {words_ + static_cast<uint64_t>(rank) * words_per_thread_, words_per_thread_};
}

// Written, not only mapped: untouched pages would all be the one page of zeros.
absl::Status MemoryProbe::Touch() {
  return RunPinned(cpus_,
                   [this](int rank) {
                     const std::span<uint64_t> part = Part(rank);
                     std::fill(part.begin(), part.end(), static_cast<uint64_t>(rank) + 1);
                   })
      .status();
}

template <typename Work>
absl::StatusOr<BandwidthResult> MemoryProbe::Measure(const Work& work) {
  RETURN_IF_ERROR(RunPinned(cpus_, work).status());
  std::vector<Sample> samples;
  for (int i = 0; i < repetitions_; ++i) {
    ASSIGN_OR_RETURN(const PinnedRun run, RunPinned(cpus_, work));
    samples.push_back({static_cast<double>(bytes()) / run.seconds * 1e-9, run.disturbed});
  }
  const Summary summary = Summarize(std::move(samples));
  return BandwidthResult{.median_gbps = summary.median,
                         .best_gbps = summary.best,
                         .threads = static_cast<int>(cpus_.size()),
                         .bytes = bytes(),
                         .samples = summary.samples,
                         .disturbed = summary.disturbed};
}

absl::StatusOr<BandwidthResult> MemoryProbe::Read() {
  std::atomic<uint64_t> sink{0};
  return Measure([&](int rank) { sink.fetch_xor(StreamRead(Part(rank))); });
}

absl::StatusOr<BandwidthResult> MemoryProbe::Copy() {
  return Measure([this](int rank) {
    const std::span<uint64_t> part = Part(rank);
    StreamCopy(part.first(part.size() / 2), part.last(part.size() / 2));
  });
}

absl::StatusOr<BandwidthResult> MeasureReadBandwidth(const BandwidthOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<MemoryProbe> probe, MemoryProbe::Create(options));
  return probe->Read();
}

absl::StatusOr<BandwidthResult> MeasureCopyBandwidth(const BandwidthOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<MemoryProbe> probe, MemoryProbe::Create(options));
  return probe->Copy();
}

}  // namespace plinth::perf
