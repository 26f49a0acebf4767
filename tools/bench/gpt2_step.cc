#include "plinth/tools/bench/gpt2_step.h"

#include <chrono>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "plinth/config/loader/loader.h"
#include "plinth/config/train.pb.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/device/allocator.h"
#include "plinth/hardware/device/registry.h"
#include "plinth/hardware/kernels/kernel.h"
#include "plinth/hardware/threading/threads.h"
#include "plinth/models/zoo/create.h"
#include "plinth/train/autograd/tape_ops.h"
#include "plinth/train/loop/micro_batch.h"
#include "plinth/train/loss/head_loss.h"
#include "plinth/train/optim/flat_layout.h"
#include "plinth/train/optim/gradient_store.h"
#include "plinth/train/optim/optimizer.h"

namespace plinth::tools {
namespace {

constexpr int64_t kBucketBytes = 4 << 20;
constexpr double kLearningRate = 1e-4;

class CpuStep : public Gpt2Step {
 public:
  CpuStep(std::unique_ptr<Device> device, std::unique_ptr<models::LanguageModel> model,
          int64_t batch, int64_t tokens, int threads)
      : batch_(batch),
        tokens_(tokens),
        device_(std::move(device)),
        stream_(device_->CreateStream()),
        allocator_(device_.get()),
        threads_(threads),
        ctx_{stream_.get(), &threads_, &allocator_},
        model_(std::move(model)),
        layout_(model_->parameters(), kBucketBytes),
        store_(&layout_, &ctx_, &allocator_),
        optimizer_(AdamW(), &layout_, &ctx_, &allocator_),
        tape_(&ctx_, &allocator_, &store_) {
    models::Initialize(*model_, /*seed=*/1, allocator_, *stream_);
  }

  absl::StatusOr<StepTime> Run() override {
    const train::MicroBatch batch = RandomBatch();
    const auto start = std::chrono::steady_clock::now();
    const float weight = 1 / static_cast<float>(batch.target_tokens());
    store_.BeginStep();
    const models::TokenBatch inputs = batch.tokens();
    const Tensor hidden = model_->Hidden(tape_, inputs);
    store_.ExpectLast([](int) {});
    const train::HeadLossResult head =
        train::HeadLoss(tape_, hidden, model_->head(), batch.targets(), weight);
    tape_.Backward(hidden, head.dhidden_TD);
    store_.FinishStep();
    optimizer_.Step(store_.flat(), kLearningRate, /*gradient_scale=*/1, ++step_);
    std::vector<float> losses(static_cast<size_t>(batch.target_tokens()));
    stream_->CopyOut(losses.data(), head.loss_T.view().data, head.loss_T.view().bytes());
    RETURN_IF_ERROR(stream_->Synchronize());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    return StepTime{.seconds = took.count(),
                    .loss = std::accumulate(losses.begin(), losses.end(), 0.0) * weight};
  }

 private:
  static config::AdamWConfig AdamW() {
    config::AdamWConfig config;
    config.set_lr(kLearningRate);
    config.set_weight_decay(0.1);
    config::FillDefaults(config);
    return config;
  }

  train::MicroBatch RandomBatch() {
    std::uniform_int_distribution<int32_t> id(0,
                                              static_cast<int32_t>(model_->dims().vocab_size - 1));
    train::MicroBatch batch;
    std::vector<int32_t> sample(static_cast<size_t>(tokens_ + 1));
    for (int64_t i = 0; i < batch_; ++i) {
      for (int32_t& token : sample) token = id(random_);
      batch.Add(sample);
    }
    return batch;
  }

  const int64_t batch_;
  const int64_t tokens_;
  std::mt19937_64 random_{1};
  int64_t step_ = 0;
  // Destroyed in reverse: tensors before the allocator, which is before its device.
  const std::unique_ptr<Device> device_;
  const std::unique_ptr<Stream> stream_;
  CachingAllocator allocator_;
  Threads threads_;
  KernelContext ctx_;
  const std::unique_ptr<models::LanguageModel> model_;
  const train::FlatLayout layout_;
  train::GradientStore store_;
  train::AdamWOptimizer optimizer_;
  train::TapeOps tape_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Gpt2Step>> Gpt2Step::Create(const config::ModelConfig& model,
                                                           int64_t batch, int64_t tokens,
                                                           int threads) {
  ASSIGN_OR_RETURN(std::unique_ptr<models::LanguageModel> made, models::CreateModel(model));
  ASSIGN_OR_RETURN(std::unique_ptr<Device> device, CreateDevice(DeviceKind::kCpu));
  return std::unique_ptr<Gpt2Step>(
      std::make_unique<CpuStep>(std::move(device), std::move(made), batch, tokens, threads));
}

}  // namespace plinth::tools
