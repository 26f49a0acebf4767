// TapeOps: the operations of training. They compute like any Ops and record how to go back.
//
//   TapeOps tape(&ctx, &allocator, &sink);
//   Tensor y = model.Hidden(tape, batch);
//   tape.Backward(y, dy);                  // parameter gradients are in the sink now
//
// Values are named by Tensor::id(). Backward walks the records from the last to the first;
// the gradient of a value is the sum over its uses, in reverse order of use, and is freed once
// its producer has consumed it. A record holds handles to just the operands that its gradient
// needs and goes as soon as it has run, so activations are freed along the way.
#ifndef PLINTH_TRAIN_AUTOGRAD_TAPE_OPS_H_
#define PLINTH_TRAIN_AUTOGRAD_TAPE_OPS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "plinth/hardware/device/tensor.h"
#include "plinth/hardware/kernels/kernel.h"
#include "plinth/models/nn/ops.h"
#include "plinth/train/autograd/device_copies.h"
#include "plinth/train/autograd/gradient_sink.h"

namespace plinth::train {

struct TapeOptions {
  // Checkpoint() keeps only what its body captured and runs the body again in backward. The
  // gradients are the same bits either way: the same kernels see the same operands.
  bool recompute = false;
};

// One tape serves one forward and one backward pass at a time, and can then be used again.
// Linear is the fast product of training (kernels/matmul), so hidden states agree with
// EagerOps within rounding, not bit for bit.
// Owns     the recorded activations. `ctx`, `allocator`, `sink`, the model's parameters, the
//          TokenBatch and what it borrows must outlive Backward.
// Threads  used by one thread at a time.
// Errors   CHECKs shapes, a batch with a cache, and values that the output does not depend on.
class TapeOps : public models::Ops {
 public:
  TapeOps(KernelContext* ctx, CachingAllocator* allocator, GradientSink* sink,
          TapeOptions options = {});

  Tensor Embedding(const models::Parameter& table_VD, std::span<const int32_t> ids_T) override;
  Tensor Linear(const Tensor& x_TI, const models::Parameter& w_OI,
                const models::Parameter* bias_O) override;
  Tensor LayerNorm(const Tensor& x_TD, const models::Parameter& gain_D,
                   const models::Parameter& bias_D, float eps) override;
  Tensor RmsNorm(const Tensor& x_TD, const models::Parameter& gain_D, float eps) override;
  Tensor Add(const Tensor& a, const Tensor& b) override;
  Tensor Gelu(const Tensor& x) override;
  Tensor SwiGlu(const Tensor& gate, const Tensor& up) override;
  Tensor Rope(const Tensor& x, const models::RopeSpec& spec,
              const models::TokenBatch& batch) override;
  Tensor Attention(const Tensor& q, const Tensor& k, const Tensor& v,
                   const models::AttentionSpec& spec, const models::TokenBatch& batch) override;
  Tensor GatherRows(const Tensor& x_TD, std::span<const int32_t> rows_R) override;
  // With recompute, `body` is called again in backward: what it captures by reference must
  // live until then, so it captures tensors by value.
  Tensor Checkpoint(const std::function<Tensor(models::Ops&)>& body) override;

  // Adds the gradients of every parameter used, given the gradient of `output`, and empties
  // the tape. Work is queued on the stream when it returns, not done.
  void Backward(const Tensor& output, const Tensor& gradient);

  // For a loss that uses a parameter outside the ops above (a fused output projection):
  // BeginUse, one contribution to the place, EndUse. Complete() of a parameter comes after all
  // its uses, so that one with further uses in the tape (a tied embedding) is not early.
  GradientSink::Place BeginUse(const models::Parameter& parameter);
  void EndUse(const models::Parameter& parameter);

  KernelContext& ctx() { return *ctx_; }
  CachingAllocator& allocator() { return *allocator_; }
  DeviceCopies& copies() { return copies_; }

 private:
  using BackwardFn = std::function<void(const Tensor& dy)>;
  struct Node {
    uint64_t output = 0;
    BackwardFn backward;
  };

  Tensor New(const Shape& shape) { return Tensor::New(*allocator_, DType::kF32, shape); }
  // Counts a use of a parameter whose gradient a record of this pass will add to.
  void CountUse(const models::Parameter& parameter);
  void Record(const Tensor& output, BackwardFn backward);
  bool Wanted(uint64_t value) const { return tracked_.contains(value); }
  // Adds to the gradient of a value, named by its id; nothing when it is not wanted. Keeps a
  // handle to `gradient` and never writes into it.
  void AddTo(uint64_t value, const Tensor& gradient);
  // Runs and drops records until `remaining` are left.
  void Unwind(size_t remaining);
  // A place that holds a sum: zeros when nothing was added yet.
  TensorView SumPlace(const models::Parameter& parameter);

  KernelContext* const ctx_;
  CachingAllocator* const allocator_;
  GradientSink* const sink_;
  const TapeOptions options_;
  DeviceCopies copies_;
  bool dropping_ = false;  // inside a checkpoint whose body runs again later: nothing is recorded
  bool backward_ = false;  // what runs now is recomputed: its uses were counted in forward
  std::vector<Node> nodes_;
  absl::flat_hash_set<uint64_t> tracked_;            // values whose gradient is wanted
  absl::flat_hash_map<uint64_t, Tensor> gradients_;  // of tracked values, not yet consumed
  absl::flat_hash_map<const models::Parameter*, int64_t> uses_;  // contributions to come
};

}  // namespace plinth::train

#endif  // PLINTH_TRAIN_AUTOGRAD_TAPE_OPS_H_
