// For tests: a checkpoint of a tiny model with random weights and a real tokenizer.
#ifndef PLINTH_INFER_LOAD_TEST_CHECKPOINT_H_
#define PLINTH_INFER_LOAD_TEST_CHECKPOINT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "plinth/config/run.pb.h"
#include "plinth/models/tokenizer/tokenizer.h"

namespace plinth::infer {

// What to break before the checkpoint is written.
struct TestCheckpointOptions {
  int64_t step = 7;
  std::string left_out;      // name of a tensor that is not written
  int32_t extra_tokens = 0;  // of the tokenizer, beyond the model's
  int64_t layers = 2;
  int64_t positions = 64;
  // Instead of the one trained on a few words.
  const models::Tokenizer* tokenizer = nullptr;
  // Draws tokens of several bytes almost always, so that replies look like words.
  bool wordy = false;
};

// Writes <run_dir>/checkpoints/step-N: Llama, the vocabulary of a tokenizer trained on a few
// words, weights drawn from seed 5, and optimizer state beside them.
absl::Status WriteTestCheckpoint(const std::string& run_dir, const TestCheckpointOptions& options);

}  // namespace plinth::infer

#endif  // PLINTH_INFER_LOAD_TEST_CHECKPOINT_H_
