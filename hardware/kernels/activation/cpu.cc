#include "plinth/hardware/kernels/activation/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hardware/kernels/activation/cpu.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
#include "plinth/hardware/kernels/vector_loop.h"
#include "plinth/hardware/kernels/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace plinth {
namespace HWY_NAMESPACE {

// 1 / (1 + exp(-z)).
template <class D>
HWY_INLINE hn::Vec<D> Sigmoid(D d, hn::Vec<D> z) {
  const auto one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, Exp(d, hn::Neg(z))));
}

// Gelu is x * sigmoid(2 k (x + c x^3)), since (1 + tanh(u)) / 2 = sigmoid(2 u): this form
// keeps its relative precision where 1 + tanh cancels.
constexpr float kTwoK = 1.5957691216057308f;  // 2 sqrt(2/pi)
constexpr float kCubic = 0.044715f;

template <class D>
HWY_INLINE hn::Vec<D> GeluSigmoid(D d, hn::Vec<D> x) {
  const auto inner = hn::MulAdd(hn::Mul(x, x), hn::Set(d, kTwoK * kCubic), hn::Set(d, kTwoK));
  return Sigmoid(d, hn::Mul(x, inner));
}

void GeluRange(const GeluArgs& args, int64_t begin, int64_t end) {
  const hn::ScalableTag<float> d;
  const float* from = args.x.ptr<float>();
  float* y = args.y.ptr<float>();
  ForVectors(d, begin, end, [=](int64_t i, int64_t count) HWY_ATTR {
    const auto x = LoadPart(d, from + i, count);
    StorePart(hn::Mul(x, GeluSigmoid(d, x)), d, y + i, count);
  });
}

// With s = sigmoid(z(x)):  dy/dx = s + x s (1 - s) z'(x).
void GeluBackwardRange(const GeluBackwardArgs& args, int64_t begin, int64_t end) {
  const hn::ScalableTag<float> d;
  const float* from = args.x.ptr<float>();
  const float* dy = args.dy.ptr<float>();
  float* dx = args.dx.ptr<float>();
  const auto one = hn::Set(d, 1.0f);
  const auto limit = hn::Set(d, 12.0f);
  ForVectors(d, begin, end, [=](int64_t i, int64_t count) HWY_ATTR {
    // Beyond 12 the slope is 0 or 1 to the last bit, and x^3 would overflow at some point.
    const auto x = hn::Max(hn::Min(LoadPart(d, from + i, count), limit), hn::Neg(limit));
    const auto s = GeluSigmoid(d, x);
    const auto inner_slope =
        hn::MulAdd(hn::Mul(x, x), hn::Set(d, 3 * kTwoK * kCubic), hn::Set(d, kTwoK));
    const auto bend = hn::Mul(hn::Mul(x, hn::Sub(one, s)), inner_slope);
    const auto slope = hn::MulAdd(s, bend, s);
    StorePart(hn::Mul(LoadPart(d, dy + i, count), slope), d, dx + i, count);
  });
}

void SwiGluRange(const SwiGluArgs& args, int64_t begin, int64_t end) {
  const hn::ScalableTag<float> d;
  const float* gate = args.gate.ptr<float>();
  const float* up = args.up.ptr<float>();
  float* y = args.y.ptr<float>();
  ForVectors(d, begin, end, [=](int64_t i, int64_t count) HWY_ATTR {
    const auto z = LoadPart(d, gate + i, count);
    const auto silu = hn::Mul(z, Sigmoid(d, z));
    StorePart(hn::Mul(silu, LoadPart(d, up + i, count)), d, y + i, count);
  });
}

// With s = sigmoid(z):  silu'(z) = s (1 + z (1 - s)).
void SwiGluBackwardRange(const SwiGluBackwardArgs& args, int64_t begin, int64_t end) {
  const hn::ScalableTag<float> d;
  const float* gate = args.gate.ptr<float>();
  const float* up = args.up.ptr<float>();
  const float* upstream = args.dy.ptr<float>();
  float* dgate = args.dgate.ptr<float>();
  float* dup = args.dup.ptr<float>();
  const auto one = hn::Set(d, 1.0f);
  ForVectors(d, begin, end, [=](int64_t i, int64_t count) HWY_ATTR {
    const auto z = LoadPart(d, gate + i, count);
    const auto dy = LoadPart(d, upstream + i, count);
    const auto s = Sigmoid(d, z);
    const auto slope = hn::Mul(s, hn::MulAdd(z, hn::Sub(one, s), one));
    const auto to_gate = hn::Mul(hn::Mul(dy, LoadPart(d, up + i, count)), slope);
    StorePart(to_gate, d, dgate + i, count);
    StorePart(hn::Mul(dy, hn::Mul(z, s)), d, dup + i, count);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace plinth
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plinth {
namespace {

HWY_EXPORT(GeluRange);
HWY_EXPORT(GeluBackwardRange);
HWY_EXPORT(SwiGluRange);
HWY_EXPORT(SwiGluBackwardRange);

// Below this many elements a thread costs more than it brings.
constexpr int64_t kGrain = 1 << 12;

}  // namespace

namespace cpu {

void Gelu(const GeluArgs& args, Threads& threads) {
  threads.ParallelFor(args.x.elements(), kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(GeluRange)(args, begin, end);
  });
}

void GeluBackward(const GeluBackwardArgs& args, Threads& threads) {
  threads.ParallelFor(args.x.elements(), kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(GeluBackwardRange)(args, begin, end);
  });
}

void SwiGlu(const SwiGluArgs& args, Threads& threads) {
  threads.ParallelFor(args.gate.elements(), kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(SwiGluRange)(args, begin, end);
  });
}

void SwiGluBackward(const SwiGluBackwardArgs& args, Threads& threads) {
  threads.ParallelFor(args.gate.elements(), kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(SwiGluBackwardRange)(args, begin, end);
  });
}

}  // namespace cpu
}  // namespace plinth
#endif  // HWY_ONCE
