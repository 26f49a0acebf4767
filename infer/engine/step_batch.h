// StepBatch: the host arrays of one forward pass over several sequences.
#ifndef PLINTH_INFER_ENGINE_STEP_BATCH_H_
#define PLINTH_INFER_ENGINE_STEP_BATCH_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "plinth/infer/engine/sequence.h"
#include "plinth/infer/kv/kv_cache.h"
#include "plinth/models/nn/token_batch.h"

namespace plinth::infer {

// Built anew for each step; its buffers are reused. Thread-compatible.
class StepBatch {
 public:
  // Gathers the next `step_tokens` tokens of each sequence; their pages are reserved.
  void Build(const std::vector<std::unique_ptr<Sequence>>& sequences, const KvCache& cache);

  // Valid until the next Build; the object must not move meanwhile.
  const models::TokenBatch& batch() const { return batch_; }
  // Rows of logits that sequence `s` gets, as a range of the batch's output rows.
  int64_t rows_begin(size_t s) const { return row_starts_[s]; }
  int64_t rows_end(size_t s) const { return row_starts_[s + 1]; }

 private:
  void Append(Sequence& sequence);

  std::vector<int32_t> ids_, positions_, seq_starts_, past_, page_table_, output_rows_;
  std::vector<int64_t> row_starts_;
  models::KvView kv_;
  models::TokenBatch batch_;
};

}  // namespace plinth::infer

#endif  // PLINTH_INFER_ENGINE_STEP_BATCH_H_
