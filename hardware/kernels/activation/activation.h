// Pointwise activations, f32, contiguous, any rank with equal element counts.
//   Gelu    y = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))   (GPT-2's form)
//   SwiGlu  y = silu(gate) * up,  silu(z) = z / (1 + exp(-z))       (Shazeer, 2020)
// An element's result depends on that element alone, also at the tail of a vector.
#ifndef PLINTH_HARDWARE_KERNELS_ACTIVATION_ACTIVATION_H_
#define PLINTH_HARDWARE_KERNELS_ACTIVATION_ACTIVATION_H_

#include "plinth/hardware/kernels/kernel.h"

namespace plinth {

struct GeluArgs {
  TensorView x;
  TensorView y;

  template <typename F>
  void ForEachView(F&& visit) {
    visit(x);
    visit(y);
  }
};

void Gelu(const GeluArgs& args, KernelContext& ctx);

struct GeluBackwardArgs {
  TensorView x;
  TensorView dy;
  TensorView dx;  // overwritten; may be dy

  template <typename F>
  void ForEachView(F&& visit) {
    visit(x);
    visit(dy);
    visit(dx);
  }
};

void GeluBackward(const GeluBackwardArgs& args, KernelContext& ctx);

struct SwiGluArgs {
  TensorView gate;
  TensorView up;
  TensorView y;

  template <typename F>
  void ForEachView(F&& visit) {
    visit(gate);
    visit(up);
    visit(y);
  }
};

void SwiGlu(const SwiGluArgs& args, KernelContext& ctx);

struct SwiGluBackwardArgs {
  TensorView gate;
  TensorView up;
  TensorView dy;
  TensorView dgate;  // overwritten
  TensorView dup;    // overwritten

  template <typename F>
  void ForEachView(F&& visit) {
    visit(gate);
    visit(up);
    visit(dy);
    visit(dgate);
    visit(dup);
  }
};

void SwiGluBackward(const SwiGluBackwardArgs& args, KernelContext& ctx);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_KERNELS_ACTIVATION_ACTIVATION_H_
