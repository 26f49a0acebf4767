// TrainStep: one optimizer step of one rank, from micro-batches to new weights.
#ifndef PLINTH_TRAIN_LOOP_TRAIN_STEP_H_
#define PLINTH_TRAIN_LOOP_TRAIN_STEP_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "plinth/comm/comm.h"
#include "plinth/config/train.pb.h"
#include "plinth/hardware/kernels/kernel.h"
#include "plinth/models/nn/model.h"
#include "plinth/train/autograd/tape_ops.h"
#include "plinth/train/data_parallel/gradient_reducer.h"
#include "plinth/train/loop/micro_batch.h"
#include "plinth/train/optim/flat_layout.h"
#include "plinth/train/optim/gradient_store.h"
#include "plinth/train/optim/optimizer.h"

namespace plinth::train {

struct StepResult {
  double loss = 0;           // nats per token of the global batch, equal on every rank
  double gradient_norm = 0;  // before clipping
  double learning_rate = 0;
};

// Holds everything that a step changes besides the weights: gradients, moments, and the
// collectives between them. Weights, gradients and moments stay equal on all ranks, bit for
// bit, as long as all run the same steps.
// Owns     optimizer state and gradients on the device. Borrows the rest.
// Threads  used by one thread.
class TrainStep {
 public:
  // `config` is complete and valid. The model's parameters have values. All pointers outlive
  // the object.
  TrainStep(const config::TrainConfig& config, const models::LanguageModel* model,
            comm::Communicator* comm, KernelContext* ctx, CachingAllocator* allocator);

  // Sums the gradients of loss / `global_tokens` over the micro-batches of all ranks, clips
  // them, and updates the weights. `step` counts from 1. `micro_batches` may be empty, on some
  // ranks. `global_tokens` > 0 are the targets of all ranks' micro-batches together, so a token
  // weighs the same in whichever micro-batch it comes.
  // Errors   the communicator's and the device's; kOutOfRange when the gradient is not finite.
  //          Then weights and moments are as before the step.
  absl::StatusOr<StepResult> Run(std::span<const MicroBatch> micro_batches, int64_t global_tokens,
                                 int64_t step);

  const FlatLayout& layout() const { return layout_; }
  const AdamWOptimizer& optimizer() const { return optimizer_; }
  const GradientStore& gradients() const { return store_; }

 private:
  // Loss summed over this rank's tokens, not weighted; gradients are in the store, reduced.
  absl::StatusOr<double> Gradients(std::span<const MicroBatch> micro_batches,
                                   int64_t global_tokens);

  const config::TrainConfig config_;
  const models::LanguageModel* const model_;
  comm::Communicator* const comm_;
  KernelContext* const ctx_;
  CachingAllocator* const allocator_;
  FlatLayout layout_;
  GradientStore store_;
  AdamWOptimizer optimizer_;
  TapeOps tape_;
  GradientReducer reducer_;
};

}  // namespace plinth::train

#endif  // PLINTH_TRAIN_LOOP_TRAIN_STEP_H_
