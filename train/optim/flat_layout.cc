#include "plinth/train/optim/flat_layout.h"

#include "plinth/hardware/base/check.h"

namespace plinth::train {
namespace {

constexpr int64_t kAlignElements = 16;

}  // namespace

FlatLayout::FlatLayout(std::span<models::Parameter* const> parameters, int64_t bucket_bytes)
    : slots_(parameters.size()) {
  CHECK_GT(bucket_bytes, 0);
  const int64_t bucket_elements = (bucket_bytes + 3) / 4;
  bool open = false;
  for (size_t i = parameters.size(); i-- > 0;) {
    if (!open) buckets_.push_back({.begin = elements_, .end = elements_});
    Bucket& bucket = buckets_.back();
    slots_[i] = {.parameter = parameters[i],
                 .begin = elements_,
                 .bucket = static_cast<int>(buckets_.size()) - 1};
    CHECK(index_.emplace(parameters[i], static_cast<int64_t>(i)).second) << parameters[i]->name();
    const int64_t padded =
        (parameters[i]->shape().elements() + kAlignElements - 1) / kAlignElements * kAlignElements;
    elements_ += padded;
    bucket.end = elements_;
    ++bucket.parameters;
    open = bucket.end - bucket.begin < bucket_elements;
  }
}

int64_t FlatLayout::IndexOf(const models::Parameter& parameter) const {
  const auto it = index_.find(&parameter);
  CHECK(it != index_.end()) << parameter.name();
  return it->second;
}

TensorView FlatLayout::View(const Tensor& flat, const Slot& slot) const {
  const Shape& shape = slot.parameter->shape();
  return flat.view().Rows(slot.begin, slot.begin + shape.elements()).Reshape(shape);
}

}  // namespace plinth::train
