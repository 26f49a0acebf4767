// AdamW over all parameters of a model, and the norm that gradients are clipped by.
#ifndef PLINTH_TRAIN_OPTIM_OPTIMIZER_H_
#define PLINTH_TRAIN_OPTIM_OPTIMIZER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "plinth/config/train.pb.h"
#include "plinth/hardware/device/tensor.h"
#include "plinth/hardware/kernels/kernel.h"
#include "plinth/train/optim/flat_layout.h"

namespace plinth::train {

// Holds the first and second moments (kernels/optimizer states the formula) in the layout of
// the gradients. Threads: used by one thread.
class AdamWOptimizer {
 public:
  // Moments start at zero. All pointers outlive the optimizer. `config` has its defaults filled
  // (config/loader).
  AdamWOptimizer(const config::AdamWConfig& config, const FlatLayout* layout, KernelContext* ctx,
                 CachingAllocator* allocator);

  // Updates every parameter's value in place. `step` counts from 1; the gradients in `flat`
  // are multiplied by `gradient_scale` first. Parameters that do not decay keep their size.
  void Step(const Tensor& flat, double lr, double gradient_scale, int64_t step);

  // State of a parameter, in its shape, for checkpoints.
  TensorView m(const FlatLayout::Slot& slot) const { return layout_->View(m_, slot); }
  TensorView v(const FlatLayout::Slot& slot) const { return layout_->View(v_, slot); }

 private:
  const config::AdamWConfig config_;
  const FlatLayout* const layout_;
  KernelContext* const ctx_;
  Tensor m_;
  Tensor v_;
};

// Euclidean norm of all gradients: sums of squares in double for each parameter, added in the
// layout's parameter order, so the value depends on neither threads nor buckets, and is equal
// on every rank that holds equal gradients. Waits for the stream.
// Errors   the device's.
absl::StatusOr<double> GradientNorm(const FlatLayout& layout, const Tensor& flat,
                                    KernelContext& ctx, CachingAllocator& allocator);

// Factor that brings a norm down to `limit`; 1 when it is within, or limit is 0 (no limit).
double ClipScale(double norm, double limit);

// Learning rate of step 1..steps: rises linearly from 0 to `lr` at warmup_steps, then falls on
// a half cosine to lr * final_ratio at the last step.
double LearningRate(double lr, const config::ScheduleConfig& schedule, int64_t steps, int64_t step);

}  // namespace plinth::train

#endif  // PLINTH_TRAIN_OPTIM_OPTIMIZER_H_
