// Attention on host memory.
#ifndef PLINTH_HARDWARE_KERNELS_ATTENTION_CPU_H_
#define PLINTH_HARDWARE_KERNELS_ATTENTION_CPU_H_

#include "plinth/hardware/kernels/attention/attention.h"

namespace plinth {

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
void AttentionCpu(const AttentionTask& task, Threads& threads);

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
void AttentionBackwardCpu(const AttentionBackwardTask& task, Threads& threads);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_KERNELS_ATTENTION_CPU_H_
