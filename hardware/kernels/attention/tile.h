// Tiles of up to 64 rows of k or v, brought into the layouts that panel products read.
//
// A Highway header: include it after "hwy/highway.h" inside a file compiled once per
// target (foreach_target.h).
#if defined(PLINTH_HARDWARE_KERNELS_ATTENTION_TILE_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLINTH_HARDWARE_KERNELS_ATTENTION_TILE_H_
#undef PLINTH_HARDWARE_KERNELS_ATTENTION_TILE_H_
#else
#define PLINTH_HARDWARE_KERNELS_ATTENTION_TILE_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "plinth/hardware/base/numeric.h"
#include "plinth/hardware/kernels/attention/attention.h"
#include "plinth/hardware/kernels/attention/blocks.h"
#include "plinth/hardware/kernels/panel_product.h"

HWY_BEFORE_NAMESPACE();
namespace plinth {
namespace HWY_NAMESPACE {

// Rows of one head lie a page of memory apart, where the hardware foresees nothing: ask for
// a row this many rows before it is copied.
constexpr int64_t kRowsAhead = 16;

template <class E>
void PrefetchRow(const E* row, int64_t D) {
  constexpr int64_t kLine = 64 / sizeof(E);
  for (int64_t i = 0; i < D; i += kLine) __builtin_prefetch(row + i);
}

// The D elements at `from`, in f32, with zeros up to the next panel.
inline void CopyRow(const float* from, int64_t D, float* to) {
  std::copy_n(from, D, to);
  std::fill(to + D, to + PanelColumns(D), 0.0f);
}
inline void CopyRow(const uint16_t* from, int64_t D, float* to) {
  const PanelTag d;
  constexpr int64_t kLanes = kPanel / kPanelVecs;
  int64_t i = 0;
  for (; i + kLanes <= D; i += kLanes) hn::StoreU(LoadPlain()(from + i, 0), d, to + i);
  for (; i < D; ++i) to[i] = Bf16ToF32(from[i]);  // exact, so the same either way
  std::fill(to + D, to + PanelColumns(D), 0.0f);
}

// Four columns of as many rows as a vector has lanes: turned[c * kAttentionTile + r].
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void TransposeFour(const float* rows, int64_t, float* turned) {
  for (int c = 0; c < 4; ++c) turned[c * kAttentionTile] = rows[c];
}
#else
// Lanes of four: elements 0..3 of rows r, r+4, r+8, .., as many as fill the vector.
template <class D>
HWY_INLINE hn::Vec<D> LoadFours(D d, const float* row, int64_t stride) {
  constexpr int kRows = static_cast<int>(hn::MaxLanes(D()));
  if constexpr (kRows <= 4) {
    return hn::LoadU(d, row);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, LoadFours(half, row + kRows / 2 * stride, stride),
                       LoadFours(half, row, stride));
  }
}

HWY_INLINE void TransposeFour(const float* rows, int64_t stride, float* turned) {
  const PanelTag d;
  const hn::Repartition<uint64_t, PanelTag> pairs;
  const auto r0 = LoadFours(d, rows, stride), r1 = LoadFours(d, rows + stride, stride);
  const auto r2 = LoadFours(d, rows + 2 * stride, stride);
  const auto r3 = LoadFours(d, rows + 3 * stride, stride);
  // Within each block of four lanes: (r0[0] r1[0] r0[1] r1[1]), and so on.
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
  const auto store = [&](auto v, int column) HWY_ATTR {
    hn::StoreU(hn::BitCast(d, v), d, turned + column * kAttentionTile);
  };
  store(hn::InterleaveLower(pairs, low01, low23), 0);
  store(hn::InterleaveUpper(pairs, low01, low23), 1);
  store(hn::InterleaveLower(pairs, high01, high23), 2);
  store(hn::InterleaveUpper(pairs, high01, high23), 3);
}
#endif

// turned[c, r] = rows[r, c]: `rows` are PanelColumns(columns) apart, their number is a
// multiple of 16; rows of `turned` are kAttentionTile apart.
inline void Transpose(const float* rows, int64_t count, int64_t columns, float* turned) {
  constexpr int64_t kLanes = kPanel / kPanelVecs;
  const int64_t stride = PanelColumns(columns);
  for (int64_t r = 0; r < count; r += kLanes) {
    for (int64_t c = 0; c < stride; c += 4) {
      TransposeFour(rows + r * stride + c, stride, turned + c * kAttentionTile + r);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace plinth
HWY_AFTER_NAMESPACE();

#endif  // PLINTH_HARDWARE_KERNELS_ATTENTION_TILE_H_
