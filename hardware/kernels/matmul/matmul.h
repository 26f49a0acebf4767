// General matrix product for training, the fastest the device has (oneDNN, cuBLASLt).
//   c_MN = op(a) . op(b)            accumulate: c_MN += ...
// op transposes when its flag is set: a is [M,K] or [K,M], b is [K,N] or [N,K].
// Types    f32. Rows may be strided (innermost stride 1). c_MN overlaps neither a nor b.
// Empty    sizes are fine: with K == 0 the product is zero.
// Order    of sums is the library's and may depend on M: see linear/ for the product
//          whose rows do not depend on the batch they are computed in.
#ifndef PLINTH_HARDWARE_KERNELS_MATMUL_MATMUL_H_
#define PLINTH_HARDWARE_KERNELS_MATMUL_MATMUL_H_

#include "plinth/hardware/kernels/kernel.h"

namespace plinth {

struct MatmulArgs {
  TensorView a;
  TensorView b;
  TensorView c_MN;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;

  template <typename F>
  void ForEachView(F&& visit) {
    visit(a);
    visit(b);
    visit(c_MN);
  }
};

void Matmul(const MatmulArgs& args, KernelContext& ctx);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_KERNELS_MATMUL_MATMUL_H_
