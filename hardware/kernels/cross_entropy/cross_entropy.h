// Negative log-likelihood of targets under softmax(logits), and its gradient in place.
//   loss[t] = logsumexp(logits[t]) - logits[t, target[t]]
//   dlogits[t, v] = weight * (softmax(logits[t])[v] - [v == target[t]])
// A target of -1 masks its row: loss 0, gradient 0. `weight` is 1 / (tokens that count in
// the whole global batch), so gradients of micro-batches and ranks add up. Sums in f32
// per row in a fixed order: a row's result depends on that row alone. Rows of logits may be
// strided. Host kernels CHECK that other targets are in [0, V). No allocation.
#ifndef PLINTH_HARDWARE_KERNELS_CROSS_ENTROPY_CROSS_ENTROPY_H_
#define PLINTH_HARDWARE_KERNELS_CROSS_ENTROPY_CROSS_ENTROPY_H_

#include "plinth/hardware/kernels/kernel.h"

namespace plinth {

struct CrossEntropyArgs {
  TensorView logits_TV;  // with dlogits: overwritten by the gradient
  TensorView targets_T;  // i32
  TensorView loss_T;     // out, natural log, not weighted
  bool gradient = false;
  float weight = 1;

  template <typename F>
  void ForEachView(F&& visit) {
    visit(logits_TV);
    visit(targets_T);
    visit(loss_T);
  }
};

void CrossEntropy(const CrossEntropyArgs& args, KernelContext& ctx);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_KERNELS_CROSS_ENTROPY_CROSS_ENTROPY_H_
