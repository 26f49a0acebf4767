#include "plinth/models/cost/cost.h"

namespace plinth::models {
namespace {

bool IsGpt2(const ModelSpec& spec) { return spec.architecture == config::GPT2; }
// Matrices [ffn, model] of the feed-forward layer: up and down, and Llama's gate.
int64_t FfnMatrices(const ModelSpec& spec) { return IsGpt2(spec) ? 2 : 3; }

// Weights of one block's matrices: each costs two FLOPs for each token.
int64_t MatrixElements(const ModelSpec& spec) {
  const ModelDims& d = spec.dims;
  const int64_t attention = d.model_dim * (2 * d.q_dim() + 2 * d.kv_dim());
  return attention + FfnMatrices(spec) * d.model_dim * d.ffn_dim;
}

int64_t VectorElements(const ModelSpec& spec) {
  const ModelDims& d = spec.dims;
  if (!IsGpt2(spec)) return 2 * d.model_dim;  // two gains
  const int64_t norms = 4 * d.model_dim;
  const int64_t attention_biases = d.q_dim() + 2 * d.kv_dim() + d.model_dim;
  return norms + attention_biases + d.ffn_dim + d.model_dim;
}

}  // namespace

ParameterCount CountParameters(const ModelSpec& spec) {
  const ModelDims& d = spec.dims;
  const int64_t positions = IsGpt2(spec) ? d.max_positions * d.model_dim : 0;
  return {.embeddings = d.vocab_size * d.model_dim + positions,
          .layers = d.layers * (MatrixElements(spec) + VectorElements(spec)),
          .final_norm = (IsGpt2(spec) ? 2 : 1) * d.model_dim,
          .head = spec.tie_embeddings ? 0 : d.vocab_size * d.model_dim};
}

ForwardFlops CountForwardFlops(const ModelSpec& spec, int64_t tokens, int64_t past,
                               int64_t logit_rows) {
  const ModelDims& d = spec.dims;
  const double t = static_cast<double>(tokens), layers = static_cast<double>(d.layers);
  // Keys read by tokens at positions past, .., past + tokens - 1.
  const double keys = t * static_cast<double>(past) + t * (t + 1) / 2;
  return {.matrices = 2.0 * t * layers * static_cast<double>(MatrixElements(spec)),
          .attention = 4.0 * keys * layers * static_cast<double>(d.q_dim()),
          .head = 2.0 * static_cast<double>(logit_rows) * static_cast<double>(d.vocab_size) *
                  static_cast<double>(d.model_dim)};
}

double TrainFlopsPerToken(const ModelSpec& spec, int64_t sequence_length) {
  const ForwardFlops forward =
      CountForwardFlops(spec, sequence_length, /*past=*/0, /*logit_rows=*/sequence_length);
  const double step = 3.0 * (forward.matrices + forward.head) + 3.5 * forward.attention;
  return step / static_cast<double>(sequence_length);
}

int64_t KvBytesPerToken(const ModelSpec& spec, int64_t element_bytes) {
  return 2 * spec.dims.layers * spec.dims.kv_dim() * element_bytes;
}

ActivationBytes CountActivationBytes(const ModelSpec& spec, int64_t tokens) {
  const ModelDims& d = spec.dims;
  const int64_t row = tokens * static_cast<int64_t>(sizeof(float));
  // Outputs in a block: two norms, two residual sums and two projections back to the model
  // width; q and the mixed values; k and v; the feed-forward layer's hidden values, before
  // and after its activation. Llama's rotation writes q and k once more.
  const int64_t rotated = IsGpt2(spec) ? 0 : d.q_dim() + d.kv_dim();
  const int64_t ffn = FfnMatrices(spec) * d.ffn_dim;
  const int64_t width = 6 * d.model_dim + 2 * d.q_dim() + 2 * d.kv_dim() + rotated + ffn;
  return {.per_block = row * width,
          .boundaries = row * d.model_dim * (d.layers + 2),
          .logits = row * d.vocab_size};
}

}  // namespace plinth::models
