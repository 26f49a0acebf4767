#include "plinth/tools/plan/memory.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/device/allocator.h"
#include "plinth/hardware/device/tensor.h"
#include "plinth/hardware/kernels/kernel.h"
#include "plinth/hardware/threading/threads.h"
#include "plinth/infer/engine/engine.h"
#include "plinth/infer/kv/kv_cache.h"
#include "plinth/models/nn/eager_ops.h"
#include "plinth/models/nn/model.h"
#include "plinth/models/zoo/create.h"
#include "plinth/tools/plan/counting_device.h"
#include "plinth/train/autograd/tape_ops.h"
#include "plinth/train/loop/micro_batch.h"
#include "plinth/train/loss/head_loss.h"
#include "plinth/train/optim/flat_layout.h"
#include "plinth/train/optim/gradient_store.h"
#include "plinth/train/optim/optimizer.h"

namespace plinth::tools {
namespace {

// What code on a device needs. Members are destroyed in reverse: the allocator last but two.
struct Machine {
  CountingDevice device;
  std::unique_ptr<Stream> stream = device.CreateStream();
  CachingAllocator allocator{&device};
  Threads threads{1};
  KernelContext ctx{stream.get(), &threads, &allocator};

  int64_t live() const { return allocator.stats().live_bytes; }
  int64_t peak() const { return allocator.stats().peak_bytes; }
};

absl::StatusOr<std::unique_ptr<models::LanguageModel>> ModelOn(const config::ModelConfig& config,
                                                               Machine& machine) {
  ASSIGN_OR_RETURN(std::unique_ptr<models::LanguageModel> model, models::CreateModel(config));
  for (models::Parameter* parameter : model->parameters()) {
    parameter->set_value(Tensor::New(machine.allocator, DType::kF32, parameter->shape()));
  }
  return model;
}

train::MicroBatch ZeroBatch(int64_t samples, int64_t length) {
  train::MicroBatch batch;
  const std::vector<int32_t> sample(static_cast<size_t>(length + 1), 0);
  for (int64_t i = 0; i < samples; ++i) batch.Add(sample);
  return batch;
}

}  // namespace

absl::StatusOr<TrainMemory> PlanTraining(const config::RunConfig& config) {
  const config::TrainConfig& train = config.train();
  CHECK(train.sequence_length() > 0 && train.micro_batch() > 0);
  Machine machine;
  TrainMemory memory;
  ASSIGN_OR_RETURN(const auto model, ModelOn(config.model(), machine));
  memory.weights = machine.live();
  const train::FlatLayout layout(model->parameters(), train.bucket_bytes());
  for (const train::FlatLayout::Bucket& bucket : layout.buckets()) {
    ++memory.buckets;
    memory.largest_bucket =
        std::max<int64_t>(memory.largest_bucket, 4 * (bucket.end - bucket.begin));
  }
  train::GradientStore store(&layout, &machine.ctx, &machine.allocator);
  memory.gradients = machine.live() - memory.weights;
  train::AdamWOptimizer optimizer(train.adamw(), &layout, &machine.ctx, &machine.allocator);
  memory.moments = machine.live() - memory.weights - memory.gradients;

  train::TapeOps tape(&machine.ctx, &machine.allocator, &store, {.recompute = train.recompute()});
  const train::MicroBatch batch = ZeroBatch(train.micro_batch(), train.sequence_length());
  const models::TokenBatch inputs = batch.tokens();
  store.BeginStep();
  store.ExpectLast([](int) {});
  const int64_t before = machine.live();
  {
    const Tensor hidden = model->Hidden(tape, inputs);
    memory.activations = machine.live() - before;
    const train::HeadLossResult head =
        train::HeadLoss(tape, hidden, model->head(), batch.targets(), /*weight=*/1);
    tape.Backward(hidden, head.dhidden_TD);
  }
  store.FinishStep();
  RETURN_IF_ERROR(
      train::GradientNorm(layout, store.flat(), machine.ctx, machine.allocator).status());
  optimizer.Step(store.flat(), /*lr=*/1, /*gradient_scale=*/1, /*step=*/1);
  memory.peak = machine.peak();
  const int64_t vocabulary = model->dims().vocab_size;
  const int64_t rows = std::min(train::LogitRows(vocabulary), inputs.tokens());
  memory.logits = CachingAllocator::BlockBytes(rows * vocabulary * DTypeSize(DType::kF32));
  return memory;
}

absl::StatusOr<ServeMemory> PlanServing(const config::RunConfig& config) {
  Machine machine;
  ServeMemory memory;
  ASSIGN_OR_RETURN(const auto model, ModelOn(config.model(), machine));
  const models::ModelDims& dims = model->dims();
  memory.weights = machine.live();

  const infer::EngineOptions engine;  // its defaults
  const int64_t page = engine.page_tokens;
  const int64_t sequence_pages = (dims.max_positions + page - 1) / page;
  const int64_t pages = std::max((config.serve().kv_tokens() + page - 1) / page, int64_t{1});
  ASSIGN_OR_RETURN(
      const auto cache,
      infer::KvCache::Create(dims, {.pages = pages, .page_tokens = page}, machine.allocator));
  memory.cache = machine.live() - memory.weights;

  const bool bf16 = config.serve().weights() == config::WEIGHT_BF16;
  models::EagerOps ops(machine.ctx, bf16 ? DType::kBf16 : DType::kF32);
  const std::vector<int32_t> zero = {0}, one_token = {0, 1};
  // As the engine does: one token makes EagerOps pack every weight.
  model->Logits(ops, {.ids = zero, .positions = zero, .seq_starts = one_token});
  memory.packed = machine.live() - memory.weights - memory.cache;

  // A step of as many tokens as the engine computes at once, in sequences that fit the model.
  const int64_t tokens = std::min({engine.step_tokens, dims.max_positions, pages * page});
  const std::vector<int32_t> ids(static_cast<size_t>(tokens), 0);
  const std::vector<int32_t> starts = {0, static_cast<int32_t>(tokens)};
  const std::vector<int32_t> table(static_cast<size_t>(sequence_pages), 0);
  std::vector<int32_t> positions(ids.size());
  std::iota(positions.begin(), positions.end(), 0);
  const int64_t outputs = std::min(tokens, config.serve().max_batch());
  const std::vector<int32_t> rows(positions.begin(), positions.begin() + outputs);
  const models::KvView kv = {.layers = cache->layers(),
                             .page_tokens = page,
                             .max_pages = sequence_pages,
                             .page_table = table,
                             .past = zero};
  const models::TokenBatch batch = {.ids = ids,
                                    .positions = positions,
                                    .seq_starts = starts,
                                    .output_rows = rows,
                                    .all_rows = false,
                                    .kv = &kv};
  model->Logits(ops, batch);
  memory.peak = machine.peak();
  return memory;
}

}  // namespace plinth::tools
