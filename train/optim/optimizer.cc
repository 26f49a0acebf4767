#include "plinth/train/optim/optimizer.h"

#include <cmath>
#include <vector>

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/kernels/optimizer/optimizer.h"

namespace plinth::train {
namespace {

Tensor Zeros(const FlatLayout& layout, KernelContext& ctx, CachingAllocator& allocator) {
  Tensor flat = Tensor::New(allocator, DType::kF32, {layout.elements()});
  ctx.stream->FillZero(flat.view().data, flat.view().bytes());
  return flat;
}

TensorView Flatten(const TensorView& view) { return view.Reshape({view.elements()}); }

}  // namespace

AdamWOptimizer::AdamWOptimizer(const config::AdamWConfig& config, const FlatLayout* layout,
                               KernelContext* ctx, CachingAllocator* allocator)
    : config_(config),
      layout_(layout),
      ctx_(ctx),
      m_(Zeros(*layout, *ctx, *allocator)),
      v_(Zeros(*layout, *ctx, *allocator)) {
  CHECK_GT(config.eps(), 0) << "defaults are not filled";
}

void AdamWOptimizer::Step(const Tensor& flat, double lr, double gradient_scale, int64_t step) {
  for (const FlatLayout::Slot& slot : layout_->slots()) {
    const bool decays = slot.parameter->decays();
    AdamW({.w = Flatten(slot.parameter->value().view()),
           .g = Flatten(layout_->View(flat, slot)),
           .m = Flatten(m(slot)),
           .v = Flatten(v(slot)),
           .lr = static_cast<float>(lr),
           .beta1 = static_cast<float>(config_.beta1()),
           .beta2 = static_cast<float>(config_.beta2()),
           .eps = static_cast<float>(config_.eps()),
           .decay = decays ? static_cast<float>(config_.weight_decay()) : 0.0f,
           .grad_scale = static_cast<float>(gradient_scale),
           .step = step},
          *ctx_);
  }
}

absl::StatusOr<double> GradientNorm(const FlatLayout& layout, const Tensor& flat,
                                    KernelContext& ctx, CachingAllocator& allocator) {
  const int64_t count = static_cast<int64_t>(layout.slots().size());
  const Tensor squares = Tensor::New(allocator, DType::kF64, {count});
  for (int64_t i = 0; i < count; ++i) {
    SquareSum(
        {.x = Flatten(layout.View(flat, layout.slots()[i])), .out = squares.view().Rows(i, i + 1)},
        ctx);
  }
  std::vector<double> on_host(static_cast<size_t>(count));
  ctx.stream->CopyOut(on_host.data(), squares.view().data, squares.view().bytes());
  RETURN_IF_ERROR(ctx.stream->Synchronize()) << "gradient norm";
  double sum = 0;
  for (const double square : on_host) sum += square;
  return std::sqrt(sum);
}

double ClipScale(double norm, double limit) {
  return limit > 0 && norm > limit ? limit / norm : 1.0;
}

double LearningRate(double lr, const config::ScheduleConfig& schedule, int64_t steps,
                    int64_t step) {
  CHECK(step >= 1 && step <= steps) << step << " of " << steps;
  const int64_t warmup = schedule.warmup_steps();
  if (step <= warmup) return lr * static_cast<double>(step) / static_cast<double>(warmup);
  const double progress = static_cast<double>(step - warmup) / static_cast<double>(steps - warmup);
  const double cosine = 0.5 * (1 + std::cos(std::acos(-1.0) * progress));
  return lr * (schedule.final_ratio() + (1 - schedule.final_ratio()) * cosine);
}

}  // namespace plinth::train
