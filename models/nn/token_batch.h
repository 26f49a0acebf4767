// TokenBatch: what a forward pass runs over.
#ifndef PLINTH_MODELS_NN_TOKEN_BATCH_H_
#define PLINTH_MODELS_NN_TOKEN_BATCH_H_

#include <cstdint>
#include <span>

#include "plinth/hardware/tensor/tensor_view.h"

namespace plinth::models {

// One layer's keys and values: [N, KV*D] rows of a paged cache, on the model's device.
struct KvLayer {
  TensorView k_rows;
  TensorView v_rows;
};

// The paged key/value cache as seen by one forward pass. Position j of sequence s lives in
// row page_table[s * max_pages + j / page_tokens] * page_tokens + j % page_tokens of every
// layer. The forward pass writes the rows of its own tokens, then reads rows 0..position.
// Host memory but for the layers; borrowed for the call.
struct KvView {
  std::span<const KvLayer> layers;
  int64_t page_tokens = 0;
  int64_t max_pages = 0;
  std::span<const int32_t> page_table;  // S * max_pages
  std::span<const int32_t> past;        // S: tokens of each sequence already in the cache
};

// T tokens of S sequences laid end to end (no padding). Sequence s owns tokens
// [seq_starts[s], seq_starts[s+1]) and attends only to itself. Host memory, borrowed for
// the call. All sequence state travels here, never in a model or an Ops.
struct TokenBatch {
  std::span<const int32_t> ids;         // T
  std::span<const int32_t> positions;   // T: place in the sequence, past included
  std::span<const int32_t> seq_starts;  // S + 1, starts with 0, ends with T
  // Tokens whose hidden state is wanted (next-token logits); all of them when absent.
  std::span<const int32_t> output_rows;
  bool all_rows = true;        // false: only output_rows, in that order
  const KvView* kv = nullptr;  // absent: no past, nothing is kept (training, evaluation)

  int64_t tokens() const { return static_cast<int64_t>(ids.size()); }
  int64_t sequences() const { return static_cast<int64_t>(seq_starts.size()) - 1; }
};

}  // namespace plinth::models

#endif  // PLINTH_MODELS_NN_TOKEN_BATCH_H_
