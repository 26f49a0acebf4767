#include "plinth/train/loop/train_step.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/train/loss/head_loss.h"

namespace plinth::train {

TrainStep::TrainStep(const config::TrainConfig& config, const models::LanguageModel* model,
                     comm::Communicator* comm, KernelContext* ctx, CachingAllocator* allocator)
    : config_(config),
      model_(model),
      comm_(comm),
      ctx_(ctx),
      allocator_(allocator),
      layout_(model->parameters(), config.bucket_bytes()),
      store_(&layout_, ctx, allocator),
      optimizer_(config.adamw(), &layout_, ctx, allocator),
      tape_(ctx, allocator, &store_, {.recompute = config.recompute()}),
      reducer_(&store_, comm, ctx->stream) {}

absl::StatusOr<StepResult> TrainStep::Run(std::span<const MicroBatch> micro_batches,
                                          int64_t global_tokens, int64_t step) {
  ASSIGN_OR_RETURN(double loss, Gradients(micro_batches, global_tokens));
  RETURN_IF_ERROR(comm_->AllReduce(comm::BufferOf(std::span<double>(&loss, 1)))) << "loss";
  StepResult result = {.loss = loss / static_cast<double>(global_tokens)};
  ASSIGN_OR_RETURN(result.gradient_norm, GradientNorm(layout_, store_.flat(), *ctx_, *allocator_));
  if (!std::isfinite(result.gradient_norm)) {
    return absl::OutOfRangeError(
        absl::StrCat("step ", step, ": the gradient is not finite (loss ", result.loss,
                     "); lower train.adamw.lr or train.clip_norm and go on from the last "
                     "checkpoint"));
  }
  result.learning_rate =
      LearningRate(config_.adamw().lr(), config_.schedule(), config_.steps(), step);
  optimizer_.Step(store_.flat(), result.learning_rate,
                  ClipScale(result.gradient_norm, config_.clip_norm()), step);
  return result;
}

absl::StatusOr<double> TrainStep::Gradients(std::span<const MicroBatch> micro_batches,
                                            int64_t global_tokens) {
  CHECK_GT(global_tokens, 0);
  const float weight = static_cast<float>(1.0 / static_cast<double>(global_tokens));
  store_.BeginStep();
  std::vector<std::vector<float>> losses;
  for (size_t i = 0; i < micro_batches.size(); ++i) {
    const MicroBatch& micro_batch = micro_batches[i];
    const models::TokenBatch batch = micro_batch.tokens();
    const Tensor hidden = model_->Hidden(tape_, batch);
    const bool last = i + 1 == micro_batches.size();
    if (last) store_.ExpectLast([this](int bucket) { reducer_.Start(bucket); });
    HeadLossResult head = HeadLoss(tape_, hidden, model_->head(), micro_batch.targets(), weight);
    tape_.Backward(hidden, head.dhidden_TD);
    losses.emplace_back(static_cast<size_t>(micro_batch.target_tokens()));
    ctx_->stream->CopyOut(losses.back().data(), head.loss_T.view().data,
                          head.loss_T.view().bytes());
  }
  if (micro_batches.empty()) store_.ExpectLast([this](int bucket) { reducer_.Start(bucket); });
  store_.FinishStep();
  RETURN_IF_ERROR(reducer_.Finish());
  RETURN_IF_ERROR(ctx_->stream->Synchronize()) << "backward";
  double sum = 0;
  for (const std::vector<float>& loss_T : losses) {
    for (const float loss : loss_T) sum += loss;
  }
  return sum;
}

}  // namespace plinth::train
