// Vector loops whose tail goes through the same vector code as the rest, so that an
// element's bits do not depend on where in an array it lies.
//
// Included once per instruction set, after "hwy/foreach_target.h" (hence the odd guard).
#if defined(PLINTH_HARDWARE_KERNELS_VECTOR_LOOP_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLINTH_HARDWARE_KERNELS_VECTOR_LOOP_H_
#undef PLINTH_HARDWARE_KERNELS_VECTOR_LOOP_H_
#else
#define PLINTH_HARDWARE_KERNELS_VECTOR_LOOP_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plinth {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// `count` elements (1 .. all lanes) at `from`, zero in the lanes after them. Touches no
// memory beyond them, which masked loads do not promise on every target.
template <class D>
HWY_INLINE hn::Vec<D> LoadPart(D d, const hn::TFromD<D>* from, int64_t count) {
  if (count == static_cast<int64_t>(hn::Lanes(d))) return hn::LoadU(d, from);
  HWY_ALIGN hn::TFromD<D> lanes[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = from[i];
  return hn::Load(d, lanes);
}

template <class D>
HWY_INLINE void StorePart(hn::Vec<D> v, D d, hn::TFromD<D>* to, int64_t count) {
  if (count == static_cast<int64_t>(hn::Lanes(d))) return hn::StoreU(v, d, to);
  HWY_ALIGN hn::TFromD<D> lanes[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
  hn::Store(v, d, lanes);
  for (int64_t i = 0; i < count; ++i) to[i] = lanes[i];
}

// Zeroes the lanes from `count` on.
template <class D>
HWY_INLINE hn::Vec<D> KeepPart(D d, hn::Vec<D> v, int64_t count) {
  if (count == static_cast<int64_t>(hn::Lanes(d))) return v;
  return hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(count)), v);
}

// Calls step(i, count) for vectors of `count` elements from i, over [begin, end).
template <class D, class F>
HWY_INLINE void ForVectors(D d, int64_t begin, int64_t end, F step) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes) step(i, lanes);
  if (i < end) step(i, end - i);
}

// Reduces [0, n): four independent chains acc = step(acc, i, count) from `start` hide the
// latency of one, combined lane by lane as (0+1)+(2+3). The order depends on n alone.
// `step` must leave lanes from `count` on without effect.
template <class D, class F, class Combine>
HWY_INLINE hn::Vec<D> ReduceVectors(D d, int64_t n, hn::Vec<D> start, F step, Combine combine) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a0 = start, a1 = start, a2 = start, a3 = start;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a0 = step(a0, i, lanes);
    a1 = step(a1, i + lanes, lanes);
    a2 = step(a2, i + 2 * lanes, lanes);
    a3 = step(a3, i + 3 * lanes, lanes);
  }
  for (; i + lanes <= n; i += lanes) a0 = step(a0, i, lanes);
  if (i < n) a1 = step(a1, i, n - i);
  return combine(combine(a0, a1), combine(a2, a3));
}

// The sum over all lanes and elements of a chain of additions that starts at zero.
template <class D, class F>
HWY_INLINE hn::TFromD<D> SumVectors(D d, int64_t n, F step) {
  const auto add = [](hn::Vec<D> a, hn::Vec<D> b) HWY_ATTR { return hn::Add(a, b); };
  return hn::GetLane(hn::SumOfLanes(d, ReduceVectors(d, n, hn::Zero(d), step, add)));
}

}  // namespace HWY_NAMESPACE
}  // namespace plinth
HWY_AFTER_NAMESPACE();

#endif  // PLINTH_HARDWARE_KERNELS_VECTOR_LOOP_H_
