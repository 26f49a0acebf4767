#include "plinth/train/optim/gradient_store.h"

#include <algorithm>
#include <utility>

namespace plinth::train {

GradientStore::GradientStore(const FlatLayout* layout, KernelContext* ctx,
                             CachingAllocator* allocator)
    : layout_(layout),
      ctx_(ctx),
      flat_(Tensor::New(*allocator, DType::kF32, {layout->elements()})),
      holds_sum_(layout->slots().size()) {
  // Once for the gaps between parameters, which nothing else writes.
  ctx_->stream->FillZero(flat_.view().data, flat_.view().bytes());
}

void GradientStore::BeginStep() {
  std::fill(holds_sum_.begin(), holds_sum_.end(), false);
  on_bucket_ = nullptr;
}

void GradientStore::ExpectLast(std::function<void(int bucket)> on_bucket) {
  on_bucket_ = std::move(on_bucket);
  next_bucket_ = 0;
  open_.clear();
  for (const FlatLayout::Bucket& bucket : layout_->buckets()) open_.push_back(bucket.parameters);
}

void GradientStore::FinishStep() {
  const auto slots = layout_->slots();
  for (size_t i = 0; i < slots.size(); ++i) {
    if (holds_sum_[i]) continue;
    const TensorView view = layout_->View(flat_, slots[i]);
    ctx_->stream->FillZero(view.data, view.bytes());
  }
  if (on_bucket_ == nullptr) return;
  std::fill(open_.begin(), open_.end(), 0);
  CallReadyBuckets();
  on_bucket_ = nullptr;
}

GradientSink::Place GradientStore::Accumulate(const models::Parameter& parameter) {
  const int64_t i = layout_->IndexOf(parameter);
  const bool holds_sum = holds_sum_[i];
  holds_sum_[i] = true;
  return {layout_->View(flat_, layout_->slots()[i]), holds_sum};
}

void GradientStore::Complete(const models::Parameter& parameter) {
  if (on_bucket_ == nullptr) return;
  --open_[layout_->slots()[layout_->IndexOf(parameter)].bucket];
  CallReadyBuckets();
}

TensorView GradientStore::bucket(int b) const {
  const FlatLayout::Bucket& bucket = layout_->buckets()[b];
  return flat_.view().Rows(bucket.begin, bucket.end);
}

void GradientStore::CallReadyBuckets() {
  const int buckets = static_cast<int>(open_.size());
  while (next_bucket_ < buckets && open_[next_bucket_] == 0) on_bucket_(next_bucket_++);
}

}  // namespace plinth::train
