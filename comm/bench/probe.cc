#include "plinth/comm/bench/probe.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace plinth::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kLineBytes = 64;
constexpr int64_t kLineFloats = kLineBytes / static_cast<int64_t>(sizeof(float));

// x[i] = y[i] = x[i] + y[i]. `count` is a multiple of kLineFloats and both are aligned to a line.
void SumPlain(float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = y[i] = x[i] + y[i];
}

#if defined(__x86_64__)
template <bool kPastCaches>
__attribute__((target("avx2"))) void SumAvx2(float* x, float* y, int64_t count) {
  constexpr int64_t kStep = 8;
  for (int64_t i = 0; i < count; i += kStep) {
    const __m256 sum = _mm256_add_ps(_mm256_load_ps(x + i), _mm256_load_ps(y + i));
    if (kPastCaches) {
      _mm256_stream_ps(x + i, sum);
      _mm256_stream_ps(y + i, sum);
    } else {
      _mm256_store_ps(x + i, sum);
      _mm256_store_ps(y + i, sum);
    }
  }
  _mm_sfence();
}
#endif

using Sum = void (*)(float* x, float* y, int64_t count);

Sum ChooseSum(bool past_caches) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return past_caches ? SumAvx2<true> : SumAvx2<false>;
#endif
  return SumPlain;
}

// Lets two threads meet again and again. Spins, as ranks that want no delay do.
class Meeting {
 public:
  void Meet() {
    const int64_t turn = arrived_.fetch_add(1) / 2;
    for (int spins = 0; arrived_.load() < 2 * (turn + 1); ++spins) {
      if (spins > kSpins) std::this_thread::yield();
    }
  }

 private:
  static constexpr int kSpins = 10000;
  alignas(64) std::atomic<int64_t> arrived_ = 0;
};

// A launcher may have bound this process to one CPU; the two threads stand for two processes.
void UseAllCpus() {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &all);
  // Where it is not allowed the threads share what they have, and the probe is a low one.
  (void)sched_setaffinity(0, sizeof(all), &all);
}

// Seconds per all-reduce.
double TimeSums(Sum sum, float* x, float* y, int64_t count, double seconds) {
  const int64_t half = count / kLineFloats / 2 * kLineFloats;
  Meeting meeting;
  std::atomic<bool> over = false;
  int64_t rounds = 0;
  double elapsed = 0;
  // Two meetings a round: a rank may neither read what the other has not written yet, nor write
  // what the other still reads.
  const auto work = [&](int rank) {
    UseAllCpus();
    float* const own_x = rank == 0 ? x : x + half;
    float* const own_y = rank == 0 ? y : y + half;
    const int64_t own = rank == 0 ? half : count - half;
    sum(own_x, own_y, own);
    meeting.Meet();
    const Clock::time_point start = Clock::now();
    while (!over.load()) {
      meeting.Meet();
      sum(own_x, own_y, own);
      if (rank == 0) {
        ++rounds;
        elapsed = std::chrono::duration<double>(Clock::now() - start).count();
        if (elapsed >= seconds) over.store(true);
      }
      meeting.Meet();
    }
  };
  std::thread other(work, 1);
  std::thread self(work, 0);
  other.join();
  self.join();
  return elapsed / static_cast<double>(rounds);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedMemoryProbe>> SharedMemoryProbe::Create(int64_t most_bytes) {
  const int64_t bytes = (most_bytes + 2 * kLineBytes - 1) / (2 * kLineBytes) * 2 * kLineBytes;
  void* memory = mmap(nullptr, static_cast<size_t>(2 * bytes), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return absl::ErrnoToStatus(errno, absl::StrCat("probe: ", 2 * bytes, " bytes of memory"));
  }
  return std::unique_ptr<SharedMemoryProbe>(
      new SharedMemoryProbe(static_cast<std::byte*>(memory), bytes));
}

SharedMemoryProbe::~SharedMemoryProbe() { munmap(memory_, static_cast<size_t>(2 * vector_bytes_)); }

double SharedMemoryProbe::BusBandwidth(int64_t bytes, absl::Duration length) {
  CHECK(bytes <= vector_bytes_) << bytes << " " << vector_bytes_;
  const int64_t lines = std::max<int64_t>(2, bytes / kLineBytes);
  auto* x = reinterpret_cast<float*>(memory_);
  auto* y = reinterpret_cast<float*>(memory_ + vector_bytes_);
  double best = 0;
  for (const bool past_caches : {false, true}) {
    // Zeros stay zeros, so the sums never grow.
    const double seconds =
        TimeSums(ChooseSum(past_caches), x, y, lines * kLineFloats, absl::ToDoubleSeconds(length));
    // The bus factor of an all_reduce between two ranks is 1.
    best = std::max(best, static_cast<double>(lines * kLineBytes) / seconds * 1e-9);
  }
  return best;
}

}  // namespace plinth::comm
