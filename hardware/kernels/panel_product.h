// The register-blocked inner loop that Linear and Attention share: a small product whose
// elements are each one chain of multiply-adds over k = 0, 1, .., K-1, in that order.
//   c[r, 16*p + l] = sum_k a[r, k] * b[p, k, l]     r < rows, p < panels, l < 16
// How rows and panels are grouped into registers does not change an element's bits, so a
// caller may cut a product into any pieces along rows, panels and (through c) along k.
//
// A Highway header: include it after "hwy/highway.h" inside a file compiled once per
// target (foreach_target.h). On targets without fused multiply-add (HWY_SCALAR, SSE4)
// each step rounds twice: bits then differ from other machines, not within one.
#if defined(PLINTH_HARDWARE_KERNELS_PANEL_PRODUCT_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLINTH_HARDWARE_KERNELS_PANEL_PRODUCT_H_
#undef PLINTH_HARDWARE_KERNELS_PANEL_PRODUCT_H_
#else
#define PLINTH_HARDWARE_KERNELS_PANEL_PRODUCT_H_
#endif

#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plinth {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr int64_t kPanel = 16;  // columns that lie side by side in memory

// Operands of one product; all strides count elements. B is float, or uint16_t for bf16.
// A panel of bf16 holds its steps in pairs, so that one load, a shift and a mask widen both:
//   b[p, k, l] lies at (k/2)*32 + 2*l + k%2; a last step without a partner at k*16 + l
// Its b_k is kPanel; a piece of k begins at an even step.
template <class B>
struct PanelProduct {
  const float* a = nullptr;
  int64_t a_row = 0, a_k = 1;
  const B* b = nullptr;
  int64_t b_panel = 0, b_k = kPanel;
  float* c = nullptr;
  int64_t c_row = 0;
  int64_t rows = 0, panels = 0, K = 0;
  bool accumulate = false;  // start from c instead of from 0
};

using PanelTag = hn::CappedTag<float, kPanel>;
using PanelVec = hn::Vec<PanelTag>;
inline constexpr int kPanelVecs = static_cast<int>(kPanel / hn::MaxLanes(PanelTag()));

// Vector registers that hold sums: 24 of AVX-512's 32, 12 of AVX2's 16. The others hold a
// row of b and one broadcast of a.
inline constexpr int kSums = kPanelVecs == 1 ? 24 : (kPanelVecs <= 4 ? 12 : 16);

// Rows held at once beside `panels` panels. Few rows go with many panels: a single chain of
// multiply-adds would wait for its own latency at each step.
constexpr int RowsBeside(int panels) {
  const int rows = kSums / (panels * kPanelVecs);
  return panels == 8 ? (rows >= 1 ? 1 : 0) : (rows < 8 ? rows : 8);
}

// How the elements of a row of b become floats.
struct LoadPlain {  // 16 floats, or 16 bf16 that lie side by side
  HWY_INLINE PanelVec operator()(const float* b, int64_t column) const {
    return hn::LoadU(PanelTag(), b + column);
  }
  HWY_INLINE PanelVec operator()(const uint16_t* b, int64_t column) const {
    const PanelTag d;
    const hn::RebindToUnsigned<PanelTag> du;
    const hn::Rebind<uint16_t, PanelTag> d16;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(d16, b + column))));
  }
};
template <int kStep>  // 0 or 1: of a pair of bf16
struct LoadOfPair {
  HWY_INLINE PanelVec operator()(const uint16_t* b, int64_t column) const {
    const hn::RebindToUnsigned<PanelTag> du;
#if HWY_TARGET == HWY_SCALAR
    return hn::BitCast(PanelTag(), hn::Set(du, uint32_t{b[2 * column + kStep]} << 16));
#else
    const hn::Repartition<uint16_t, decltype(du)> d16;
    const auto pair = hn::BitCast(du, hn::LoadU(d16, b + 2 * column));
    const auto bits =
        kStep == 0 ? hn::ShiftLeft<16>(pair) : hn::And(pair, hn::Set(du, 0xffff0000u));
    return hn::BitCast(PanelTag(), bits);
#endif
  }
};

// Registers of kRows x kPanels; fold expressions unroll, so that every index is a constant
// and the arrays stay in registers at any optimisation level.
template <int kRows, int kPanels, class B>
struct Block {
  static constexpr int kVecs = kPanels * kPanelVecs;
  static constexpr int64_t kLanes = kPanel / kPanelVecs;
  using Rows = std::make_integer_sequence<int, kRows>;
  using Vecs = std::make_integer_sequence<int, kVecs>;

  PanelVec sums[kRows][kVecs];

  static constexpr int64_t Column(int vec) { return vec * kLanes; }

  template <int... v>
  HWY_INLINE void ZeroRow(PanelVec (&row)[kVecs], std::integer_sequence<int, v...>) {
    ((row[v] = hn::Zero(PanelTag())), ...);
  }
  template <int... v>
  HWY_INLINE void LoadRow(PanelVec (&row)[kVecs], const float* c,
                          std::integer_sequence<int, v...>) {
    ((row[v] = hn::LoadU(PanelTag(), c + Column(v))), ...);
  }
  template <int... v>
  HWY_INLINE void StoreRow(const PanelVec (&row)[kVecs], float* c,
                           std::integer_sequence<int, v...>) {
    (hn::StoreU(row[v], PanelTag(), c + Column(v)), ...);
  }
  template <class Load, int... v>
  HWY_INLINE void LoadB(PanelVec (&row)[kVecs], const B* b, int64_t b_panel, Load load,
                        std::integer_sequence<int, v...>) {
    ((row[v] = load(b + (v / kPanelVecs) * b_panel, Column(v % kPanelVecs))), ...);
  }
  template <int... v>
  HWY_INLINE void StepRow(PanelVec (&row)[kVecs], PanelVec a, const PanelVec (&b)[kVecs],
                          std::integer_sequence<int, v...>) {
    ((row[v] = hn::MulAdd(a, b[v], row[v])), ...);
  }

  template <int... r>
  HWY_INLINE void Start(const float* c, int64_t c_row, bool accumulate,
                        std::integer_sequence<int, r...>) {
    if (accumulate) {
      (LoadRow(sums[r], c + r * c_row, Vecs()), ...);
    } else {
      (ZeroRow(sums[r], Vecs()), ...);
    }
  }
  template <class Load, int... r>
  HWY_INLINE void Step(const float* a, int64_t a_row, const B* b, int64_t b_panel, Load load,
                       std::integer_sequence<int, r...>) {
    PanelVec b_row[kVecs];
    LoadB(b_row, b, b_panel, load, Vecs());
    (StepRow(sums[r], hn::Set(PanelTag(), a[r * a_row]), b_row, Vecs()), ...);
  }
  template <int... r>
  HWY_INLINE void Finish(float* c, int64_t c_row, std::integer_sequence<int, r...>) {
    (StoreRow(sums[r], c + r * c_row, Vecs()), ...);
  }

  static HWY_NOINLINE void Run(const PanelProduct<B>& args) {
    Block block;
    const float* a = args.a;
    const B* b = args.b;
    const int64_t a_row = args.a_row, a_k = args.a_k, b_panel = args.b_panel, b_k = args.b_k;
    block.Start(args.c, args.c_row, args.accumulate, Rows());
    int64_t k = 0;
    if constexpr (std::is_same_v<B, uint16_t>) {
      for (; k + 1 < args.K; k += 2) {
        block.Step(a, a_row, b, b_panel, LoadOfPair<0>(), Rows());
        block.Step(a + a_k, a_row, b, b_panel, LoadOfPair<1>(), Rows());
        a += 2 * a_k;
        b += 2 * b_k;
      }
    }
    for (; k < args.K; ++k) {
      block.Step(a, a_row, b, b_panel, LoadPlain(), Rows());
      a += a_k;
      b += b_k;
    }
    block.Finish(args.c, args.c_row, Rows());
  }
};

template <int kPanels, class B>
void MultiplyPanels(const PanelProduct<B>& product) {
  constexpr int kMost = RowsBeside(kPanels);
  constexpr auto kRun = []<int... r>(std::integer_sequence<int, r...>) {
    return std::array<void (*)(const PanelProduct<B>&), kMost>{&Block<r + 1, kPanels, B>::Run...};
  }
  (std::make_integer_sequence<int, kMost>());
  const int64_t blocks = (product.rows + kMost - 1) / kMost;  // of nearly equal size
  PanelProduct<B> block = product;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t begin = product.rows * i / blocks, end = product.rows * (i + 1) / blocks;
    block.a = product.a + begin * product.a_row;
    block.c = product.c + begin * product.c_row;
    kRun[end - begin - 1](block);
  }
}

// Most panels that Multiply takes together for so many rows.
inline int PanelsTogether(int64_t rows) {
  for (const int panels : {8, 4, 3, 2}) {
    if (RowsBeside(panels) >= (rows < 5 ? rows : 5)) return panels;
  }
  return 1;
}

// The product; c is overwritten (accumulate: added to). Any rows, panels and K >= 0.
template <class B>
void Multiply(const PanelProduct<B>& product) {
  PanelProduct<B> group = product;
  const int together = PanelsTogether(product.rows);
  for (int64_t p = 0; p < product.panels;) {
    const int64_t left = product.panels - p;
    const int64_t panels = left == 4 && together == 3 ? 2 : (left < together ? left : together);
    group.b = product.b + p * product.b_panel;
    group.c = product.c + p * kPanel;
    const auto run = [&group, &p](auto count) {
      if constexpr (RowsBeside(count) > 0) MultiplyPanels<count>(group);
      p += count;
    };
    if (panels >= 8) {
      run(std::integral_constant<int, 8>());
    } else if (panels >= 4) {
      run(std::integral_constant<int, 4>());
    } else if (panels == 3) {
      run(std::integral_constant<int, 3>());
    } else if (panels == 2) {
      run(std::integral_constant<int, 2>());
    } else {
      run(std::integral_constant<int, 1>());
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace plinth
HWY_AFTER_NAMESPACE();

#endif  // PLINTH_HARDWARE_KERNELS_PANEL_PRODUCT_H_
