// Loss on held-out text, computed with the operations that serving uses.
#ifndef PLINTH_TRAIN_LOOP_EVALUATE_H_
#define PLINTH_TRAIN_LOOP_EVALUATE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "plinth/hardware/kernels/kernel.h"
#include "plinth/models/nn/model.h"
#include "plinth/train/loop/micro_batch.h"

namespace plinth::train {

// -log p(target), natural log, summed over the batch's targets. Runs on EagerOps, so each
// token's logits are the bits that a server computes for the same tokens, whatever the batch.
// Logits exist for a slice of rows at a time. Waits for the stream; errors: the device's.
absl::StatusOr<double> EvaluateLoss(const models::LanguageModel& model, const MicroBatch& batch,
                                    const KernelContext& ctx);

}  // namespace plinth::train

#endif  // PLINTH_TRAIN_LOOP_EVALUATE_H_
