// Gives a model's parameters values from something that holds named tensors.
#ifndef PLINTH_MODELS_LOADING_LOAD_PARAMETERS_H_
#define PLINTH_MODELS_LOADING_LOAD_PARAMETERS_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "plinth/hardware/device/allocator.h"
#include "plinth/hardware/device/device.h"
#include "plinth/hardware/tensor/shape.h"
#include "plinth/models/nn/model.h"

namespace plinth::models {

struct SourceTensor {
  std::string name;  // as in Parameter::name()
  Shape shape;
};

// Named tensors: a checkpoint, a file of another tool under Plinth's names, a test.
// Used by one thread at a time.
class ParameterSource {
 public:
  virtual ~ParameterSource() = default;
  // "checkpoint runs/tiny/step-200": starts the error messages.
  virtual std::string description() const = 0;
  // Every tensor once, any order. Knows shapes without reading elements.
  virtual std::vector<SourceTensor> tensors() const = 0;
  // Fills `elements` (the tensor's, row-major) converted to f32.
  virtual absl::Status Read(const std::string& name, std::span<float> elements) = 0;
};

// Names and shapes are compared before anything is allocated or read: kFailedPrecondition
// lists missing tensors, extra ones and shapes that differ (expected and got). An error of
// Read is returned with the tensor's name; parameters loaded before it keep their values.
// Host memory: the largest tensor once.
absl::Status LoadParameters(LanguageModel& model, ParameterSource& source,
                            CachingAllocator& allocator, Stream& stream);

}  // namespace plinth::models

#endif  // PLINTH_MODELS_LOADING_LOAD_PARAMETERS_H_
