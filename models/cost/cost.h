// What a model costs, counted from its sizes alone: nothing is allocated.
//
// FLOPs count a multiply-add as two. Only matrix products and attention are counted; norms,
// activations and rotations are a few per cent at most and are bound by memory.
#ifndef PLINTH_MODELS_COST_COST_H_
#define PLINTH_MODELS_COST_COST_H_

#include <cstdint>

#include "plinth/models/zoo/resolve.h"

namespace plinth::models {

// Elements of parameters; exact. A tied projection counts once, under embeddings.
struct ParameterCount {
  int64_t embeddings = 0;  // tokens and positions
  int64_t layers = 0;      // all blocks
  int64_t final_norm = 0;
  int64_t head = 0;  // an untied output projection
  int64_t total() const { return embeddings + layers + final_norm + head; }
};
ParameterCount CountParameters(const ModelSpec& spec);

// FLOPs of one sequence of `tokens` tokens after `past` tokens in the cache, with logits
// for `logit_rows` of them. Attention is causal: token p reads p + 1 keys, and a key costs
// 4 * head_dim per query head (q.k and the weighted sum of v).
struct ForwardFlops {
  double matrices = 0;   // projections of the blocks
  double attention = 0;  // scores and mixing
  double head = 0;       // logits
  double total() const { return matrices + attention + head; }
};
ForwardFlops CountForwardFlops(const ModelSpec& spec, int64_t tokens, int64_t past,
                               int64_t logit_rows);

// Forward and backward of one training sequence, per token. Backward costs twice the
// forward of matrices; attention's computes the scores once more (2.5 times).
double TrainFlopsPerToken(const ModelSpec& spec, int64_t sequence_length);

// Bytes of keys and values that one token keeps in the cache, `element_bytes` each.
int64_t KvBytesPerToken(const ModelSpec& spec, int64_t element_bytes);

// Bytes of f32 activations that backward of one micro-batch of `tokens` tokens keeps.
struct ActivationBytes {
  int64_t per_block = 0;   // what one block keeps while it is computed or differentiated
  int64_t boundaries = 0;  // inputs of all blocks, final hidden state and its norm
  int64_t logits = 0;
  // With Checkpoint only one block's inside is alive at a time.
  int64_t recomputed() const { return per_block + boundaries + logits; }
  int64_t kept(int64_t layers) const { return layers * per_block + boundaries + logits; }
};
ActivationBytes CountActivationBytes(const ModelSpec& spec, int64_t tokens);

}  // namespace plinth::models

#endif  // PLINTH_MODELS_COST_COST_H_
