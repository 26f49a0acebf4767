// Logits, loss and gradients that another framework computed in double for tiny models with
// closed-form weights (tools/goldens/gpt2_llama.py).
#ifndef PLINTH_MODELS_TESTING_GOLDEN_H_
#define PLINTH_MODELS_TESTING_GOLDEN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plinth/config/model.pb.h"
#include "plinth/hardware/device/allocator.h"
#include "plinth/hardware/device/device.h"
#include "plinth/models/nn/model.h"

namespace plinth::models::testing {

struct Golden {
  config::ModelConfig config;
  // The batch, without a cache; all rows are wanted.
  std::vector<int32_t> ids, positions, seq_starts;
  std::vector<int32_t> targets;  // -1: masked
  double loss = 0;               // mean over targets that are not masked, natural log
  std::vector<double> logits_TV;
  std::map<std::string, std::vector<double>> gradients;  // of loss, by parameter name
};

// Reads the architecture's file from the test's runfiles. kDataLoss names a bad line.
absl::StatusOr<Golden> LoadGolden(config::Architecture architecture);

// The model of the golden with its weights. Waits for the upload.
std::unique_ptr<LanguageModel> GoldenModel(const Golden& golden, CachingAllocator& allocator,
                                           Stream& stream);

}  // namespace plinth::models::testing

#endif  // PLINTH_MODELS_TESTING_GOLDEN_H_
