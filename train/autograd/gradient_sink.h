// GradientSink: where a backward pass leaves the gradients of parameters.
#ifndef PLINTH_TRAIN_AUTOGRAD_GRADIENT_SINK_H_
#define PLINTH_TRAIN_AUTOGRAD_GRADIENT_SINK_H_

#include "plinth/hardware/tensor/tensor_view.h"
#include "plinth/models/nn/parameter.h"

namespace plinth::train {

// Called by one thread, the one that runs the backward pass.
class GradientSink {
 public:
  struct Place {
    TensorView view;  // f32, contiguous, the parameter's shape
    // True: contributions are added to what is there. False: the elements are undefined and
    // the next contribution overwrites them.
    bool holds_sum = false;
  };

  virtual ~GradientSink() = default;

  // Where the next contribution to this gradient goes. The caller queues exactly one
  // contribution that covers every element before it asks again.
  virtual Place Accumulate(const models::Parameter& parameter) = 0;
  // The last contribution of this backward pass has been queued on the stream.
  virtual void Complete(const models::Parameter& parameter) = 0;
};

}  // namespace plinth::train

#endif  // PLINTH_TRAIN_AUTOGRAD_GRADIENT_SINK_H_
