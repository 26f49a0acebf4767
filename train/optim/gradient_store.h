// GradientStore: the gradients of one optimizer step in one flat buffer.
#ifndef PLINTH_TRAIN_OPTIM_GRADIENT_STORE_H_
#define PLINTH_TRAIN_OPTIM_GRADIENT_STORE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "plinth/hardware/device/tensor.h"
#include "plinth/hardware/kernels/kernel.h"
#include "plinth/train/autograd/gradient_sink.h"
#include "plinth/train/optim/flat_layout.h"

namespace plinth::train {

// Sums the contributions of all micro-batches of a step. The first contribution of a step
// overwrites, so nothing is zeroed that a product is about to fill.
//   BeginStep();  micro-batches ...;  ExpectLast(callback);  last micro-batch;  FinishStep();
// Threads  used by one thread.
class GradientStore : public GradientSink {
 public:
  // All three outlive the store.
  GradientStore(const FlatLayout* layout, KernelContext* ctx, CachingAllocator* allocator);

  void BeginStep();
  // The next backward pass is the step's last: `on_bucket(b)` is called when the last
  // contribution to bucket b has been queued, for b = 0, 1, .. in this order on every rank.
  void ExpectLast(std::function<void(int bucket)> on_bucket);
  // Zeroes gradients that got no contribution and calls on_bucket for buckets still open.
  void FinishStep();

  Place Accumulate(const models::Parameter& parameter) override;
  void Complete(const models::Parameter& parameter) override;

  const FlatLayout& layout() const { return *layout_; }
  const Tensor& flat() const { return flat_; }
  TensorView bucket(int b) const;

 private:
  void CallReadyBuckets();

  const FlatLayout* const layout_;
  KernelContext* const ctx_;
  Tensor flat_;
  std::vector<bool> holds_sum_;         // per slot
  std::vector<int64_t> open_;           // per bucket: parameters not complete
  std::function<void(int)> on_bucket_;  // set between ExpectLast and FinishStep
  int next_bucket_ = 0;
};

}  // namespace plinth::train

#endif  // PLINTH_TRAIN_OPTIM_GRADIENT_STORE_H_
