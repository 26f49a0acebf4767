#include "plinth/comm/direct/stream.h"

#include <algorithm>
#include <cstring>

#include "absl/container/inlined_vector.h"
#include "plinth/comm/direct/sum.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace plinth::comm {
namespace {

constexpr int64_t kLineBytes = 64;
// A block of a result stays in the first-level cache until it is with all targets.
constexpr int64_t kBlockBytes = int64_t{8} << 10;

#if defined(__x86_64__)
// `to` is aligned to a line.
void StreamLines(const std::byte* from, int64_t lines, std::byte* to) {
  for (int64_t line = 0; line < lines; ++line, from += kLineBytes, to += kLineBytes) {
    const auto* source = reinterpret_cast<const __m128i*>(from);
    auto* target = reinterpret_cast<__m128i*>(to);
    const __m128i a = _mm_loadu_si128(source);
    const __m128i b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2);
    const __m128i d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
}
#else
void StreamLines(const std::byte* from, int64_t lines, std::byte* to) {
  std::memcpy(to, from, lines * kLineBytes);
}
#endif

const std::byte* Offset(const void* base, int64_t bytes) {
  return static_cast<const std::byte*>(base) + bytes;
}

// Does as many bytes as can be done in one pass, and returns how many.
int64_t SumMost(ReduceOp op, DType dtype, std::span<const void* const> sources, int64_t bytes,
                std::span<std::byte* const> targets, StoreTo store) {
  if (dtype != DType::kF32 || (op != ReduceOp::kSum && op != ReduceOp::kAvg)) return 0;
  const bool stream = store == StoreTo::kMemory;
  const auto aligned = [](const std::byte* p) {
    return reinterpret_cast<uintptr_t>(p) % kLineBytes == 0;
  };
  if (stream && !std::all_of(targets.begin(), targets.end(), aligned)) return 0;
  const int64_t lines = bytes / kLineBytes;
  const int divisor = op == ReduceOp::kAvg ? static_cast<int>(sources.size()) : 1;
  const absl::InlinedVector<void*, 16> to(targets.begin(), targets.end());
  return SumWide(sources, lines * kSumElements, divisor, to, stream) ? lines * kLineBytes : 0;
}

}  // namespace

void Copy(const std::byte* from, int64_t bytes, std::byte* to, StoreTo store) {
  if (bytes <= 0 || from == to) return;
  if (store == StoreTo::kCache) {
    std::memcpy(to, from, bytes);
    return;
  }
  const int64_t past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % kLineBytes);
  const int64_t head = std::min(bytes, past == 0 ? 0 : kLineBytes - past);
  std::memcpy(to, from, head);
  const int64_t lines = (bytes - head) / kLineBytes;
  StreamLines(from + head, lines, to + head);
  const int64_t done = head + lines * kLineBytes;
  std::memcpy(to + done, from + done, bytes - done);
}

void ReduceTo(ReduceOp op, DType dtype, std::span<const void* const> sources, int64_t bytes,
              std::span<std::byte* const> targets, StoreTo store) {
  const int64_t summed = SumMost(op, dtype, sources, bytes, targets, store);
  const int64_t width = DTypeSize(dtype);
  alignas(64) std::byte block[kBlockBytes];
  absl::InlinedVector<const void*, 16> from(sources.size());
  for (int64_t at = summed; at < bytes; at += kBlockBytes) {
    const int64_t now = std::min(kBlockBytes, bytes - at);
    for (size_t i = 0; i < sources.size(); ++i) from[i] = Offset(sources[i], at);
    if (targets.size() == 1 && store == StoreTo::kCache) {
      Reduce(op, dtype, from, now / width, targets[0] + at);
      continue;
    }
    Reduce(op, dtype, from, now / width, block);
    for (std::byte* target : targets) Copy(block, now, target + at, store);
  }
}

void FinishStores(StoreTo store) {
#if defined(__x86_64__)
  if (store == StoreTo::kMemory) _mm_sfence();
#endif
}

}  // namespace plinth::comm
