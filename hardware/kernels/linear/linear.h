// The product of inference: y_TO = x_TI . w_OI^T + bias_O, one result for one row.
//
// Every element is a chain of fused multiply-adds over i = 0, 1, .., I-1 in that order,
// from 0, the bias added last. So a row's result does not depend on how many other rows
// are computed with it (T), on threads, or on whether the weight is packed: decode equals
// prefill and a reply does not depend on what else is in the batch.
//
// Packed weight: panels of 16 output rows, interleaved: packed[o/16][i][o%16], the last
// panel padded with zeros. A decode step then streams memory once, in order. bf16 panels
// interleave two i as well, see PackedIndex.
// Types    x, y, bias f32; weight f32 or bf16 (widened to f32, products in f32).
// Cost     no allocation when packed; else packs panel by panel into host memory.
// Machines without fused multiply-add round each step twice: other bits, same contract.
#ifndef PLINTH_HARDWARE_KERNELS_LINEAR_LINEAR_H_
#define PLINTH_HARDWARE_KERNELS_LINEAR_LINEAR_H_

#include "plinth/hardware/kernels/kernel.h"

namespace plinth {

constexpr int64_t kLinearPanel = 16;

// Where w[o, i] of [O, I] lies in its packed form. bf16 comes in pairs i, i + 1, which one
// vector load brings as 32-bit lanes; a last i without a partner lies plainly.
constexpr int64_t PackedIndex(int64_t o, int64_t i, int64_t I, bool bf16) {
  const int64_t panel = o / kLinearPanel * I * kLinearPanel, lane = o % kLinearPanel;
  if (!bf16 || (i == I - 1 && i % 2 == 0)) return panel + i * kLinearPanel + lane;
  return panel + (i - i % 2) * kLinearPanel + 2 * lane + i % 2;
}

struct LinearArgs {
  TensorView x_TI;    // rows may be strided
  TensorView w;       // [O,I], or [ceil(O/16),I,16] when packed
  TensorView bias_O;  // optional
  TensorView y_TO;
  bool packed = false;

  template <typename F>
  void ForEachView(F&& visit) {
    visit(x_TI);
    visit(w);
    visit(bias_O);
    visit(y_TO);
  }
};

void Linear(const LinearArgs& args, KernelContext& ctx);

struct PackLinearArgs {
  TensorView w_OI;    // f32
  TensorView packed;  // [ceil(O/16),I,16], f32 or bf16 (rounded to nearest even)

  template <typename F>
  void ForEachView(F&& visit) {
    visit(w_OI);
    visit(packed);
  }
};

void PackLinear(const PackLinearArgs& args, KernelContext& ctx);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_KERNELS_LINEAR_LINEAR_H_
