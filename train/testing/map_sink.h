// MapSink: keeps each gradient in a tensor of its own and notes the order of completion.
#ifndef PLINTH_TRAIN_TESTING_MAP_SINK_H_
#define PLINTH_TRAIN_TESTING_MAP_SINK_H_

#include <map>
#include <vector>

#include "plinth/hardware/device/tensor.h"
#include "plinth/train/autograd/gradient_sink.h"

namespace plinth::train::testing {

class MapSink : public GradientSink {
 public:
  explicit MapSink(CachingAllocator* allocator) : allocator_(allocator) {}

  Place Accumulate(const models::Parameter& parameter) override {
    const bool holds_sum = gradients.contains(&parameter);
    if (!holds_sum) {
      gradients[&parameter] = Tensor::New(*allocator_, DType::kF32, parameter.shape());
    }
    return {gradients[&parameter].view(), holds_sum};
  }
  void Complete(const models::Parameter& parameter) override { completed.push_back(&parameter); }

  std::map<const models::Parameter*, Tensor> gradients;
  std::vector<const models::Parameter*> completed;

 private:
  CachingAllocator* const allocator_;
};

}  // namespace plinth::train::testing

#endif  // PLINTH_TRAIN_TESTING_MAP_SINK_H_
