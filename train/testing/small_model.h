// Models so small that central differences over every parameter take milliseconds.
#ifndef PLINTH_TRAIN_TESTING_SMALL_MODEL_H_
#define PLINTH_TRAIN_TESTING_SMALL_MODEL_H_

#include <cstdint>
#include <memory>

#include "plinth/config/model.pb.h"
#include "plinth/hardware/device/allocator.h"
#include "plinth/hardware/device/device.h"
#include "plinth/models/nn/model.h"

namespace plinth::train::testing {

// Vocabulary 11, 2 layers, width 8, sequences of up to 16 tokens; about 1,500 parameters.
config::ModelConfig SmallConfig(config::Architecture architecture, bool tied);

// With weights that depend on the parameter's name and shape only, large enough that no
// gradient is tiny. Waits for the upload.
std::unique_ptr<models::LanguageModel> SmallModel(config::Architecture architecture, bool tied,
                                                  CachingAllocator& allocator, Stream& stream);

}  // namespace plinth::train::testing

#endif  // PLINTH_TRAIN_TESTING_SMALL_MODEL_H_
