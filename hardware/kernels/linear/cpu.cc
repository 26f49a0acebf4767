#include "plinth/hardware/kernels/linear/cpu.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "plinth/hardware/base/numeric.h"

// Machines without AVX2 run the scalar code: two targets fewer to compile.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hardware/kernels/linear/cpu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "plinth/hardware/kernels/panel_product.h"

#ifndef PLINTH_HARDWARE_KERNELS_LINEAR_CPU_ONCE_
#define PLINTH_HARDWARE_KERNELS_LINEAR_CPU_ONCE_
namespace plinth {

// Panel `panel` of w [O, I] where `packed` begins, in the order of PackedIndex.
template <class From, class To, class Convert>
void PackPanel(const TensorView& w, int64_t panel, To* packed, const Convert& convert) {
  constexpr bool kBf16 = std::is_same_v<To, uint16_t>;
  const int64_t first = panel * kLinearPanel, I = w.dim(1);
  const int64_t count = std::min(kLinearPanel, w.dim(0) - first);
  const From* rows = w.ptr<From>() + first * w.strides[0];
  for (int64_t i = 0; i < I; ++i) {
    for (int64_t o = 0; o < kLinearPanel; ++o) {
      packed[PackedIndex(o, i, I, kBf16)] = o < count ? convert(rows[o * w.strides[0] + i]) : To{0};
    }
  }
}

}  // namespace plinth
#endif

HWY_BEFORE_NAMESPACE();
namespace plinth {
namespace HWY_NAMESPACE {

// Steps of k, even, after which a block of weights still lies in a 48 KiB L1 cache beside x.
constexpr int64_t kStepsInL1 = 192;
// Bytes of x that a pass over the weights may use, of a core's L2 cache.
constexpr int64_t kBytesOfX = int64_t{1} << 20;

inline void AddBias(const float* bias, int64_t columns, float* y, int64_t y_row, int64_t rows) {
  for (int64_t t = 0; t < rows; ++t, y += y_row) {
    for (int64_t o = 0; o < columns; ++o) y[o] += bias[o];
  }
}

// The last panel when O is no multiple of 16: the product goes through a full panel.
template <class W>
void PartialPanel(PanelProduct<W> product, int64_t columns) {
  constexpr int64_t kRows = 32;
  float full[kRows * kPanel];
  float* const y = product.c;
  const float* const x = product.a;
  const int64_t y_row = product.c_row, rows = product.rows;
  product.c = full, product.c_row = kPanel;
  for (int64_t t = 0; t < rows; t += kRows) {
    product.a = x + t * product.a_row;
    product.rows = std::min(kRows, rows - t);
    Multiply(product);
    for (int64_t r = 0; r < product.rows; ++r) {
      std::copy_n(full + r * kPanel, columns, y + (t + r) * y_row);
    }
  }
}

// Whole panels that are used together. Many rows take k in pieces, so that a piece of the
// weights is read from L1 by every block of rows; y carries the sums between pieces.
template <class W>
void WholePanels(PanelProduct<W> product) {
  const int64_t K = product.K;
  const int64_t steps = product.rows > 8 ? kStepsInL1 : K;
  const float* const x = product.a;
  const W* const w = product.b;
  int64_t k = 0;
  do {
    product.a = x + k, product.b = w + k * kPanel;
    product.K = std::min(steps, K - k);
    product.accumulate = k > 0;
    Multiply(product);
    k += steps;
  } while (k < K);
}

// Rows [t, t + rows) of y, for panels [begin, end), whose packed weights start at w.
template <class W>
void Panels(const LinearArgs& args, const W* w, int64_t begin, int64_t end, int64_t t,
            int64_t rows) {
  const int64_t I = args.x_TI.dim(1), O = args.y_TO.dim(1);
  const int64_t whole_end = std::min(end, O / kPanel);
  PanelProduct<W> product{.a = args.x_TI.ptr<float>() + t * args.x_TI.strides[0],
                          .a_row = args.x_TI.strides[0],
                          .b_panel = I * kPanel,
                          .c_row = args.y_TO.strides[0],
                          .rows = rows,
                          .K = I};
  float* const y = args.y_TO.ptr<float>() + t * args.y_TO.strides[0];
  const int64_t together = PanelsTogether(rows);
  for (int64_t panel = begin; panel < end; panel += product.panels) {
    const bool whole = panel < whole_end;
    product.panels = whole ? std::min(together, whole_end - panel) : 1;
    const int64_t first = panel * kPanel;
    const int64_t columns = whole ? product.panels * kPanel : O - first;
    product.b = w + (panel - begin) * product.b_panel;
    product.c = y + first;
    if (whole) {
      WholePanels(product);
    } else {
      PartialPanel(product, columns);
    }
    if (args.bias_O.data != nullptr) {
      AddBias(args.bias_O.ptr<float>() + first, columns, y + first, product.c_row, rows);
    }
  }
}

template <class W>
void PackedRange(const LinearArgs& args, int64_t begin, int64_t end) {
  const int64_t T = args.x_TI.dim(0), I = args.x_TI.dim(1);
  const W* w = args.w.ptr<W>() + begin * I * kPanel;
  const int64_t most = std::max<int64_t>(64, kBytesOfX / (4 * std::max<int64_t>(I, 1)));
  const int64_t passes = (T + most - 1) / most;
  for (int64_t pass = 0; pass < passes; ++pass) {
    const int64_t t = T * pass / passes;
    Panels(args, w, begin, end, t, T * (pass + 1) / passes - t);
  }
}

template <class W>
void UnpackedRange(const LinearArgs& args, int64_t begin, int64_t end) {
  const int64_t T = args.x_TI.dim(0), I = args.x_TI.dim(1);
  const int64_t together = PanelsTogether(T);
  std::vector<W> packed(together * I * kPanel);
  for (int64_t panel = begin; panel < end; panel += together) {
    const int64_t count = std::min(together, end - panel);
    for (int64_t i = 0; i < count; ++i) {
      PackPanel<W>(args.w, panel + i, packed.data() + i * I * kPanel,
                   [](W value) { return value; });
    }
    Panels(args, packed.data(), panel, panel + count, 0, T);
  }
}

void LinearRange(const LinearArgs& args, int64_t begin, int64_t end) {
  const bool bf16 = args.w.dtype == DType::kBf16;
  const auto range = args.packed ? (bf16 ? &PackedRange<uint16_t> : &PackedRange<float>)
                                 : (bf16 ? &UnpackedRange<uint16_t> : &UnpackedRange<float>);
  range(args, begin, end);
}

}  // namespace HWY_NAMESPACE
}  // namespace plinth
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plinth {
HWY_EXPORT(LinearRange);
namespace {

// Multiply-adds that are worth a thread's start.
constexpr int64_t kStepsPerRange = int64_t{1} << 16;

}  // namespace

namespace cpu {

void Linear(const LinearArgs& args, Threads& threads) {
  const int64_t T = args.x_TI.dim(0), I = args.x_TI.dim(1), O = args.y_TO.dim(1);
  if (T == 0) return;
  const int64_t panels = (O + kLinearPanel - 1) / kLinearPanel;
  const int64_t grain = std::max<int64_t>(1, kStepsPerRange / ((T * I + 1) * kLinearPanel));
  threads.ParallelFor(panels, grain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(LinearRange)(args, begin, end);
  });
}

void PackLinear(const PackLinearArgs& args, Threads& threads) {
  const int64_t size = args.w_OI.dim(1) * kLinearPanel;
  threads.ParallelFor(args.packed.dim(0), 1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      if (args.packed.dtype == DType::kBf16) {
        PackPanel<float>(args.w_OI, panel, args.packed.ptr<uint16_t>() + panel * size, &F32ToBf16);
      } else {
        PackPanel<float>(args.w_OI, panel, args.packed.ptr<float>() + panel * size,
                         [](float value) { return value; });
      }
    }
  });
}

}  // namespace cpu
}  // namespace plinth
#endif  // HWY_ONCE
