#include "plinth/train/loss/head_loss.h"

#include <algorithm>

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/kernels/cross_entropy/cross_entropy.h"
#include "plinth/hardware/kernels/matmul/matmul.h"

namespace plinth::train {

int64_t LogitRows(int64_t vocabulary, int64_t logits_bytes) {
  return std::max<int64_t>(1, logits_bytes / (vocabulary * DTypeSize(DType::kF32)));
}

HeadLossResult HeadLoss(TapeOps& tape, const Tensor& hidden, const models::Parameter& head,
                        std::span<const int32_t> targets_T, float weight, int64_t logits_bytes) {
  const int64_t tokens = hidden.dim(0);
  const int64_t vocabulary = head.shape().dim(0);
  CHECK_EQ(tokens, static_cast<int64_t>(targets_T.size()));
  KernelContext& ctx = tape.ctx();
  const Tensor targets = tape.copies().Of(targets_T);
  HeadLossResult result = {
      .loss_T = Tensor::New(tape.allocator(), DType::kF32, {tokens}),
      .dhidden_TD = Tensor::New(tape.allocator(), DType::kF32, hidden.shape())};
  GradientSink::Place dhead = tape.BeginUse(head);
  const int64_t slice_rows = LogitRows(vocabulary, logits_bytes);
  for (int64_t begin = 0; begin < tokens; begin += slice_rows) {
    const int64_t end = std::min(begin + slice_rows, tokens);
    const TensorView rows = hidden.view().Rows(begin, end);
    const Tensor logits = Tensor::New(tape.allocator(), DType::kF32, {end - begin, vocabulary});
    Matmul({.a = rows, .b = head.value().view(), .c_MN = logits.view(), .transpose_b = true}, ctx);
    CrossEntropy({.logits_TV = logits.view(),
                  .targets_T = targets.view().Rows(begin, end),
                  .loss_T = result.loss_T.view().Rows(begin, end),
                  .gradient = true,
                  .weight = weight},
                 ctx);
    Matmul({.a = logits.view(),
            .b = rows,
            .c_MN = dhead.view,
            .transpose_a = true,
            .accumulate = dhead.holds_sum},
           ctx);
    dhead.holds_sum = true;
    Matmul({.a = logits.view(),
            .b = head.value().view(),
            .c_MN = result.dhidden_TD.view().Rows(begin, end)},
           ctx);
  }
  tape.EndUse(head);
  return result;
}

}  // namespace plinth::train
