#include "plinth/train/loop/evaluate.h"

#include <algorithm>
#include <vector>

#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/kernels/cross_entropy/cross_entropy.h"
#include "plinth/models/nn/eager_ops.h"
#include "plinth/train/autograd/device_copies.h"
#include "plinth/train/loss/head_loss.h"

namespace plinth::train {

absl::StatusOr<double> EvaluateLoss(const models::LanguageModel& model, const MicroBatch& batch,
                                    const KernelContext& context) {
  KernelContext ctx = context;
  models::EagerOps ops(ctx);
  DeviceCopies copies(&ctx, ctx.scratch);
  const Tensor targets = copies.Of(batch.targets());
  const models::TokenBatch tokens = batch.tokens();
  const Tensor hidden = model.Hidden(ops, tokens);
  const Tensor loss = Tensor::New(*ctx.scratch, DType::kF32, {hidden.dim(0)});
  const int64_t vocabulary = model.head().shape().dim(0);
  const int64_t slice_rows = LogitRows(vocabulary);
  for (int64_t begin = 0; begin < hidden.dim(0); begin += slice_rows) {
    const int64_t end = std::min(begin + slice_rows, hidden.dim(0));
    const Tensor logits = ops.Linear(hidden.Rows(begin, end), model.head(), nullptr);
    CrossEntropy({.logits_TV = logits.view(),
                  .targets_T = targets.view().Rows(begin, end),
                  .loss_T = loss.view().Rows(begin, end)},
                 ctx);
  }
  std::vector<float> on_host(static_cast<size_t>(loss.elements()));
  ctx.stream->CopyOut(on_host.data(), loss.view().data, loss.view().bytes());
  RETURN_IF_ERROR(ctx.stream->Synchronize()) << "evaluation";
  double sum = 0;
  for (const float token_loss : on_host) sum += token_loss;
  return sum;
}

}  // namespace plinth::train
