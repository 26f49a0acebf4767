// MicroBatch: samples that one rank computes at a time, laid end to end.
#ifndef PLINTH_TRAIN_LOOP_MICRO_BATCH_H_
#define PLINTH_TRAIN_LOOP_MICRO_BATCH_H_

#include <cstdint>
#include <span>
#include <vector>

#include "plinth/models/nn/token_batch.h"

namespace plinth::train {

// Owns what a TokenBatch borrows; must outlive its use. Thread-compatible.
class MicroBatch {
 public:
  // A sample of n + 1 tokens is a sequence of n inputs, each with its next token as target.
  // Needs at least two tokens. Samples may differ in length: none is padded.
  void Add(std::span<const int32_t> sample);

  int64_t samples() const { return static_cast<int64_t>(starts_.size()) - 1; }
  // Targets that count.
  int64_t target_tokens() const { return static_cast<int64_t>(targets_.size()); }
  std::span<const int32_t> targets() const { return targets_; }
  models::TokenBatch tokens() const {
    return {.ids = ids_, .positions = positions_, .seq_starts = starts_};
  }

 private:
  std::vector<int32_t> ids_, targets_, positions_;
  std::vector<int32_t> starts_ = {0};
};

}  // namespace plinth::train

#endif  // PLINTH_TRAIN_LOOP_MICRO_BATCH_H_
