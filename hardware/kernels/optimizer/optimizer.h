// Optimizer steps over contiguous f32 views of any shape and equal element counts. `w`, `m` and
// `v` are updated in place, `out` is overwritten. Threads do not change results.
//   AdamW (Loshchilov & Hutter, 2019), t = step counted from 1:
//     m = b1 m + (1-b1) g',  v = b2 v + (1-b2) g'^2,  g' = grad_scale * g
//     w -= lr * ( (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + eps) + decay * w )
//   SquareSum  out[0] = the sum of x^2 in double, partial sums of fixed size in a fixed order,
//              so the value does not depend on the thread count.
#ifndef PLINTH_HARDWARE_KERNELS_OPTIMIZER_OPTIMIZER_H_
#define PLINTH_HARDWARE_KERNELS_OPTIMIZER_OPTIMIZER_H_

#include "plinth/hardware/kernels/kernel.h"

namespace plinth {

struct AdamWArgs {
  TensorView w;
  TensorView g;
  TensorView m;
  TensorView v;
  float lr = 0;
  float beta1 = 0;
  float beta2 = 0;
  float eps = 0;
  float decay = 0;
  float grad_scale = 1;
  int64_t step = 1;

  template <typename F>
  void ForEachView(F&& visit) {
    visit(w);
    visit(g);
    visit(m);
    visit(v);
  }
};

void AdamW(const AdamWArgs& args, KernelContext& ctx);

struct SquareSumArgs {
  TensorView x;
  TensorView out;  // f64 [1]

  template <typename F>
  void ForEachView(F&& visit) {
    visit(x);
    visit(out);
  }
};

void SquareSum(const SquareSumArgs& args, KernelContext& ctx);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_KERNELS_OPTIMIZER_OPTIMIZER_H_
