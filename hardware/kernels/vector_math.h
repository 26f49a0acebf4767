// Vector exp and tanh for f32 kernels: the same bits in every lane and on every call, so
// an element's result does not depend on where in a vector it lies.
//
// A Highway header: include it after "hwy/highway.h" inside a file compiled once per
// target (foreach_target.h). Functions take a descriptor `d` and a vector of its type.
// Errors below are measured over all binades in vector_math_test.cc, with and without
// fused multiply-add.
#if defined(PLINTH_HARDWARE_KERNELS_VECTOR_MATH_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLINTH_HARDWARE_KERNELS_VECTOR_MATH_H_
#undef PLINTH_HARDWARE_KERNELS_VECTOR_MATH_H_
#else
#define PLINTH_HARDWARE_KERNELS_VECTOR_MATH_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plinth {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// 2^n for integral n in [-126, 127], through the exponent bits.
template <class D, class VI>
HWY_INLINE hn::Vec<D> PowerOfTwo(D d, VI n) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
}

// exp(r) - 1 - r for |r| <= ln(2)/2: r^2/2 + r^3/6 + ..; the truncated term is below 2^-29.
template <class D, class V>
HWY_INLINE V ExpTail(D d, V r) {
  V p = hn::Set(d, 1.0f / 5040);
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 720));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 120));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 24));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 6));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
  return hn::Mul(p, hn::Mul(r, r));
}

// exp(x) within 1.1 ulp. Results below the least normal float are 0: subnormal ones cost a
// hundred cycles each and nobody needs them. exp(-inf) = 0, exp(+inf) = +inf, NaN stays NaN.
template <class D, class V>
HWY_INLINE V Exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V lowest = hn::Set(d, -0x1.5d589ep6f);  // the last x with a normal result
  const V clamped = hn::Min(hn::Max(x, lowest), hn::Set(d, 89.0f));
  const V n = hn::Round(hn::Mul(clamped, hn::Set(d, 1.44269504f)));
  // ln(2) in two parts; the first has 12 zero bits at its end, so n times it is exact.
  V r = hn::NegMulAdd(n, hn::Set(d, 0x1.62ep-1f), clamped);
  r = hn::NegMulAdd(n, hn::Set(d, 0x1.0bfbe8p-15f), r);
  const V y = hn::Add(hn::Set(d, 1.0f), hn::Add(r, ExpTail(d, r)));
  // Two factors, since 2^n alone may overflow while the result does not.
  const auto exponent = hn::ConvertTo(di, n);
  const auto half = hn::ShiftRight<1>(exponent);
  const V scaled = hn::Mul(hn::Mul(y, PowerOfTwo(d, half)), PowerOfTwo(d, hn::Sub(exponent, half)));
  // Not `x >= lowest`, so that NaN passes through both selections.
  return hn::IfThenZeroElse(hn::Lt(x, lowest), hn::IfThenElse(hn::IsNaN(x), x, scaled));
}

// tanh(x) within 2.1 ulp. Odd bit for bit; tanh(+-inf) = +-1; NaN stays NaN.
//   tanh|x| = q / (q + 2)     with q = exp(2|x|) - 1, which for small |x| keeps all digits
template <class D, class V>
HWY_INLINE V Tanh(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V one = hn::Set(d, 1.0f), two = hn::Set(d, 2.0f);
  // Beyond 10 the result rounds to 1.
  const V twice = hn::Mul(two, hn::Min(hn::Abs(x), hn::Set(d, 10.0f)));
  const V n = hn::Round(hn::Mul(twice, hn::Set(d, 1.44269504f)));
  V r = hn::NegMulAdd(n, hn::Set(d, 0x1.62ep-1f), twice);
  r = hn::NegMulAdd(n, hn::Set(d, 0x1.0bfbe8p-15f), r);
  const V power = PowerOfTwo(d, hn::ConvertTo(di, n));
  // 2^n (1 + (exp(r) - 1)) - 1, where 2^n - 1 is exact.
  const V q = hn::MulAdd(power, hn::Add(r, ExpTail(d, r)), hn::Sub(power, one));
  const V y = hn::CopySignToAbs(hn::Div(q, hn::Add(q, two)), x);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace plinth
HWY_AFTER_NAMESPACE();

#endif  // PLINTH_HARDWARE_KERNELS_VECTOR_MATH_H_
