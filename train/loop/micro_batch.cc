#include "plinth/train/loop/micro_batch.h"

#include "plinth/hardware/base/check.h"

namespace plinth::train {

void MicroBatch::Add(std::span<const int32_t> sample) {
  CHECK_GE(sample.size(), 2u);
  const size_t inputs = sample.size() - 1;
  ids_.insert(ids_.end(), sample.begin(), sample.end() - 1);
  targets_.insert(targets_.end(), sample.begin() + 1, sample.end());
  for (size_t i = 0; i < inputs; ++i) positions_.push_back(static_cast<int32_t>(i));
  starts_.push_back(static_cast<int32_t>(ids_.size()));
}

}  // namespace plinth::train
