// HeadLoss: output projection, cross-entropy and both gradients, a slice of rows at a time.
#ifndef PLINTH_TRAIN_LOSS_HEAD_LOSS_H_
#define PLINTH_TRAIN_LOSS_HEAD_LOSS_H_

#include <cstdint>
#include <span>

#include "plinth/hardware/device/tensor.h"
#include "plinth/models/nn/parameter.h"
#include "plinth/train/autograd/tape_ops.h"

namespace plinth::train {

// Bytes of logits that exist at once. A vocabulary of 50,257 takes 200 kB a row, so logits of
// a long batch would outweigh every other activation; slices much smaller than this would
// read and write the projection's gradient too often.
constexpr int64_t kLogitsBytes = int64_t{64} << 20;
// Rows of f32 logits that fit in them, at least one.
int64_t LogitRows(int64_t vocabulary, int64_t logits_bytes = kLogitsBytes);

struct HeadLossResult {
  Tensor loss_T;      // -log p(target) of each row, natural log, not weighted; 0 where masked
  Tensor dhidden_TD;  // weight * d(sum of loss_T) / d hidden
};

// logits = hidden . head^T; loss as kernels/cross_entropy states it (a target of -1 masks its
// row). Adds weight * d(sum) / d head to the tape's sink. `weight` is 1 / (targets that count
// in the whole global batch), so that micro-batches and ranks simply add up.
// `logits_bytes` > 0 bounds a slice (at least one row); it does not change dhidden or loss
// where the product of a row does not depend on the rows beside it.
HeadLossResult HeadLoss(TapeOps& tape, const Tensor& hidden_TD, const models::Parameter& head_VD,
                        std::span<const int32_t> targets_T, float weight,
                        int64_t logits_bytes = kLogitsBytes);

}  // namespace plinth::train

#endif  // PLINTH_TRAIN_LOSS_HEAD_LOSS_H_
