// Rotary position embedding (Su et al., 2021), in the half-split layout of Llama's
// published weights: element i of a head pairs with element i + D/2 and turns by the angle
// position * inv_freq[i]. `inverse` turns back: the gradient of Rope is Rope inverse.
// Shapes   x, y [T, H*D], D even, may be the same memory; positions i32 [T];
//          inv_freq f32 [D/2]. Angles are computed in double, so long contexts stay exact.
#ifndef PLINTH_HARDWARE_KERNELS_ROPE_ROPE_H_
#define PLINTH_HARDWARE_KERNELS_ROPE_ROPE_H_

#include "plinth/hardware/kernels/kernel.h"

namespace plinth {

struct RopeArgs {
  TensorView x;
  TensorView positions;  // i32 [T]
  TensorView inv_freq;   // f32 [D/2]
  TensorView y;
  int64_t heads = 0;
  int64_t head_dim = 0;
  bool inverse = false;

  template <typename F>
  void ForEachView(F&& visit) {
    visit(x);
    visit(positions);
    visit(inv_freq);
    visit(y);
  }
};

void Rope(const RopeArgs& args, KernelContext& ctx);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_KERNELS_ROPE_ROPE_H_
