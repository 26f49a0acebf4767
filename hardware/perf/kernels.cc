#include "plinth/hardware/perf/kernels.h"

#include "hwy/cache_control.h"
#include "plinth/hardware/base/check.h"

// Highway includes this file once more for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hardware/perf/kernels.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plinth::perf {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Four streams at once: more lines are in flight than the prefetcher of one stream asks for,
// as in a product that walks several panels of a weight. The eight loads of a round hide the
// latency of the exclusive or.
uint64_t StreamReadImpl(const uint64_t* words, size_t count) {
  const hn::ScalableTag<uint64_t> d;
  const size_t lanes = hn::Lanes(d);
  const size_t quarter = count / 4;
  auto a = hn::Zero(d), b = a, e = a, f = a;
  for (size_t i = 0; i < quarter; i += 2 * lanes) {
    const uint64_t* at = words + i;
    a = hn::Xor(a, hn::Xor(hn::Load(d, at), hn::Load(d, at + lanes)));
    at += quarter;
    b = hn::Xor(b, hn::Xor(hn::Load(d, at), hn::Load(d, at + lanes)));
    at += quarter;
    e = hn::Xor(e, hn::Xor(hn::Load(d, at), hn::Load(d, at + lanes)));
    at += quarter;
    f = hn::Xor(f, hn::Xor(hn::Load(d, at), hn::Load(d, at + lanes)));
  }
  HWY_ALIGN uint64_t all[HWY_MAX_BYTES / sizeof(uint64_t)];
  hn::Store(hn::Xor(hn::Xor(a, b), hn::Xor(e, f)), d, all);
  uint64_t folded = 0;
  for (size_t i = 0; i < lanes; ++i) folded ^= all[i];
  return folded;
}

void StreamCopyImpl(const uint64_t* from, uint64_t* to, size_t count) {
  const hn::ScalableTag<uint64_t> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < count; i += 4 * lanes) {
    const auto a = hn::Load(d, from + i);
    const auto b = hn::Load(d, from + i + lanes);
    const auto e = hn::Load(d, from + i + 2 * lanes);
    const auto f = hn::Load(d, from + i + 3 * lanes);
    hn::Stream(a, d, to + i);
    hn::Stream(b, d, to + i + lanes);
    hn::Stream(e, d, to + i + 2 * lanes);
    hn::Stream(f, d, to + i + 3 * lanes);
  }
  hwy::FlushStream();
}

// Twelve chains: two ports times a latency of four or five, and with two constants still within
// sixteen registers. Values converge to one, so none becomes subnormal.
constexpr int64_t kChains = 12;

float FmaLoopImpl(int64_t iterations) {
  const hn::ScalableTag<float> d;
  const auto scale = hn::Set(d, 0.75f), shift = hn::Set(d, 0.25f);
  auto c0 = hn::Iota(d, 0.0f), c1 = hn::Iota(d, 1.0f), c2 = hn::Iota(d, 2.0f);
  auto c3 = hn::Iota(d, 3.0f), c4 = hn::Iota(d, 4.0f), c5 = hn::Iota(d, 5.0f);
  auto c6 = hn::Iota(d, 6.0f), c7 = hn::Iota(d, 7.0f), c8 = hn::Iota(d, 8.0f);
  auto c9 = hn::Iota(d, 9.0f), c10 = hn::Iota(d, 10.0f), c11 = hn::Iota(d, 11.0f);
  for (int64_t i = 0; i < iterations; ++i) {
    c0 = hn::MulAdd(c0, scale, shift);
    c1 = hn::MulAdd(c1, scale, shift);
    c2 = hn::MulAdd(c2, scale, shift);
    c3 = hn::MulAdd(c3, scale, shift);
    c4 = hn::MulAdd(c4, scale, shift);
    c5 = hn::MulAdd(c5, scale, shift);
    c6 = hn::MulAdd(c6, scale, shift);
    c7 = hn::MulAdd(c7, scale, shift);
    c8 = hn::MulAdd(c8, scale, shift);
    c9 = hn::MulAdd(c9, scale, shift);
    c10 = hn::MulAdd(c10, scale, shift);
    c11 = hn::MulAdd(c11, scale, shift);
  }
  const auto low = hn::Add(hn::Add(hn::Add(c0, c1), hn::Add(c2, c3)), hn::Add(c4, c5));
  const auto high = hn::Add(hn::Add(hn::Add(c6, c7), hn::Add(c8, c9)), hn::Add(c10, c11));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(low, high)));
}

int64_t FmaFlopsImpl() {
  return 2 * kChains * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
}

const char* InstructionSetImpl() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace plinth::perf
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plinth::perf {

HWY_EXPORT(StreamReadImpl);
HWY_EXPORT(StreamCopyImpl);
HWY_EXPORT(FmaLoopImpl);
HWY_EXPORT(FmaFlopsImpl);
HWY_EXPORT(InstructionSetImpl);

namespace {
void CheckBlock(std::span<const uint64_t> words) {
  CHECK_EQ(reinterpret_cast<uintptr_t>(words.data()) % kBlockBytes, 0u);
  CHECK_EQ(words.size_bytes() % kBlockBytes, 0u);
}
}  // namespace

uint64_t StreamRead(std::span<const uint64_t> words) {
  CheckBlock(words);
  return HWY_DYNAMIC_DISPATCH(StreamReadImpl)(words.data(), words.size());
}

void StreamCopy(std::span<const uint64_t> from, std::span<uint64_t> to) {
  CheckBlock(from);
  CheckBlock(to);
  CHECK_EQ(from.size(), to.size());
  HWY_DYNAMIC_DISPATCH(StreamCopyImpl)(from.data(), to.data(), from.size());
}

float FmaLoop(int64_t iterations) { return HWY_DYNAMIC_DISPATCH(FmaLoopImpl)(iterations); }
int64_t FmaFlopsPerIteration() { return HWY_DYNAMIC_DISPATCH(FmaFlopsImpl)(); }
const char* InstructionSet() { return HWY_DYNAMIC_DISPATCH(InstructionSetImpl)(); }

}  // namespace plinth::perf
#endif  // HWY_ONCE
