// Host variants of attention.h, vectorised for the machine they run on.
#ifndef PLINTH_HARDWARE_KERNELS_ATTENTION_CPU_H_
#define PLINTH_HARDWARE_KERNELS_ATTENTION_CPU_H_

#include "plinth/hardware/kernels/attention/attention.h"

namespace plinth::cpu {

// Shapes as checked by the entry points. `scratch` has one row for each thread.
struct AttentionTask {
  AttentionArgs args;
  TensorView scratch;

  template <typename F>
  void ForEachView(F&& visit) {
    args.ForEachView(visit);
    visit(scratch);
  }
};
Shape AttentionScratch(const AttentionArgs& args, const Threads& threads);
void Attention(const AttentionTask& task, Threads& threads);

struct AttentionBackwardTask {
  AttentionBackwardArgs args;
  TensorView scratch;
  TensorView delta_TH;  // dout . out of each query row

  template <typename F>
  void ForEachView(F&& visit) {
    args.ForEachView(visit);
    visit(scratch);
    visit(delta_TH);
  }
};
Shape AttentionBackwardScratch(const AttentionBackwardArgs& args, const Threads& threads);
void AttentionBackward(const AttentionBackwardTask& task, Threads& threads);

}  // namespace plinth::cpu

#endif  // PLINTH_HARDWARE_KERNELS_ATTENTION_CPU_H_
