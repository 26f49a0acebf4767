// Small models of every architecture for tests: odd sizes, unequal in every dimension.
#ifndef PLINTH_MODELS_TESTING_TINY_MODELS_H_
#define PLINTH_MODELS_TESTING_TINY_MODELS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "plinth/config/model.pb.h"
#include "plinth/hardware/device/allocator.h"
#include "plinth/hardware/device/device.h"
#include "plinth/models/nn/model.h"

namespace plinth::models::testing {

// Vocabulary 37, 3 layers, width 20 (GPT-2: 5 heads of 4; Llama: 4 heads of 6 on 2 KV heads).
config::ModelConfig TinyConfig(config::Architecture architecture);

// Initialised with weights ten times larger than training starts from, so that attention
// and logits are far from uniform. Waits for the upload.
std::unique_ptr<LanguageModel> TinyModel(config::Architecture architecture, uint64_t seed,
                                         CachingAllocator& allocator, Stream& stream);

// `count` ids in [0, vocab_size).
std::vector<int32_t> RandomIds(int64_t count, int64_t vocab_size, uint64_t seed);

}  // namespace plinth::models::testing

#endif  // PLINTH_MODELS_TESTING_TINY_MODELS_H_
