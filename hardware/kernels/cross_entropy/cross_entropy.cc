#include "plinth/hardware/kernels/cross_entropy/cross_entropy.h"

#include "plinth/hardware/kernels/cross_entropy/cpu.h"
#include "plinth/hardware/kernels/shape_check.h"

namespace plinth {

void CrossEntropy(const CrossEntropyArgs& args, KernelContext& ctx) {
  Dim T{"T"}, V{"V"};
  ShapeCheck check("CrossEntropy");
  check("logits_TV", args.logits_TV, DType::kF32, {&T, &V})(
      "targets_T", args.targets_T, DType::kI32, {&T})("loss_T", args.loss_T, DType::kF32, {&T});
  LaunchOnHost(ctx, args, &cpu::CrossEntropy);
}

}  // namespace plinth
