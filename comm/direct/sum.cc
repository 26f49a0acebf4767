#include "plinth/comm/direct/sum.h"

#include <cstddef>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace plinth::comm {

#if defined(__x86_64__)
namespace {

struct Job {
  const void* const* sources;
  size_t source_count;
  int64_t count;
  int divisor;
  void* const* targets;
  size_t target_count;
};

const float* At(const void* base, int64_t i) { return static_cast<const float*>(base) + i; }
float* At(void* base, int64_t i) { return static_cast<float*>(base) + i; }

template <bool kStream>
__attribute__((target("avx512f"))) inline void Store512(float* to, __m512 value) {
  if constexpr (kStream) {
    _mm512_stream_ps(to, value);
  } else {
    _mm512_storeu_ps(to, value);
  }
}

// The sum of two to one or two targets: the pointers stay in registers.
template <bool kStream>
__attribute__((target("avx512f"))) void SumTwo512(const Job& job) {
  const float* a = At(job.sources[0], 0);
  const float* b = At(job.sources[1], 0);
  float* first = At(job.targets[0], 0);
  if (job.target_count == 1) {
    for (int64_t i = 0; i < job.count; i += 16) {
      Store512<kStream>(first + i, _mm512_add_ps(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i)));
    }
    return;
  }
  float* second = At(job.targets[1], 0);
  for (int64_t i = 0; i < job.count; i += 16) {
    const __m512 sum = _mm512_add_ps(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i));
    Store512<kStream>(first + i, sum);
    Store512<kStream>(second + i, sum);
  }
}

template <bool kStream>
__attribute__((target("avx512f"))) void Sum512(const Job& job) {
  if (job.source_count == 2 && job.target_count <= 2 && job.divisor == 1) {
    return SumTwo512<kStream>(job);
  }
  const __m512 divisor = _mm512_set1_ps(static_cast<float>(job.divisor));
  for (int64_t i = 0; i < job.count; i += 16) {
    __m512 sum = _mm512_loadu_ps(At(job.sources[0], i));
    for (size_t s = 1; s < job.source_count; ++s) {
      sum = _mm512_add_ps(sum, _mm512_loadu_ps(At(job.sources[s], i)));
    }
    if (job.divisor != 1) sum = _mm512_div_ps(sum, divisor);
    for (size_t t = 0; t < job.target_count; ++t) {
      Store512<kStream>(At(job.targets[t], i), sum);
    }
  }
}

template <bool kStream>
__attribute__((target("avx2"))) void Sum256(const Job& job) {
  const __m256 divisor = _mm256_set1_ps(static_cast<float>(job.divisor));
  for (int64_t i = 0; i < job.count; i += 16) {
    __m256 low = _mm256_loadu_ps(At(job.sources[0], i));
    __m256 high = _mm256_loadu_ps(At(job.sources[0], i + 8));
    for (size_t s = 1; s < job.source_count; ++s) {
      low = _mm256_add_ps(low, _mm256_loadu_ps(At(job.sources[s], i)));
      high = _mm256_add_ps(high, _mm256_loadu_ps(At(job.sources[s], i + 8)));
    }
    if (job.divisor != 1) {
      low = _mm256_div_ps(low, divisor);
      high = _mm256_div_ps(high, divisor);
    }
    for (size_t t = 0; t < job.target_count; ++t) {
      if constexpr (kStream) {
        _mm256_stream_ps(At(job.targets[t], i), low);
        _mm256_stream_ps(At(job.targets[t], i + 8), high);
      } else {
        _mm256_storeu_ps(At(job.targets[t], i), low);
        _mm256_storeu_ps(At(job.targets[t], i + 8), high);
      }
    }
  }
}

}  // namespace

bool SumWide(std::span<const void* const> sources, int64_t count, int divisor,
             std::span<void* const> targets, bool stream) {
  const Job job{sources.data(), sources.size(), count, divisor, targets.data(), targets.size()};
  if (__builtin_cpu_supports("avx512f")) {
    stream ? Sum512<true>(job) : Sum512<false>(job);
  } else if (__builtin_cpu_supports("avx2")) {
    stream ? Sum256<true>(job) : Sum256<false>(job);
  } else {
    return false;
  }
  return true;
}
#else
bool SumWide(std::span<const void* const>, int64_t, int, std::span<void* const>, bool) {
  return false;
}
#endif

}  // namespace plinth::comm
