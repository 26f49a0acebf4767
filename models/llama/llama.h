// Llama (Touvron et al., 2023; Grattafiori et al., 2024): rotary positions, RMSNorm before
// each sub-layer, SwiGLU, grouped key/value heads, no biases.
#ifndef PLINTH_MODELS_LLAMA_LLAMA_H_
#define PLINTH_MODELS_LLAMA_LLAMA_H_

#include <string>
#include <vector>

#include "plinth/models/nn/model.h"

namespace plinth::models {

struct LlamaOptions {
  ModelDims dims;  // every field set, consistent (models/zoo resolves and checks them)
  float norm_eps = 1e-5f;
  double rope_theta = 10000;
  bool tie_embeddings = false;
};

class Llama : public LanguageModel {
 public:
  explicit Llama(const LlamaOptions& options);

  const ModelDims& dims() const override { return options_.dims; }
  Tensor Hidden(Ops& ops, const TokenBatch& batch) const override;
  const Parameter& head() const override { return *head_; }

 private:
  struct Block {
    AttentionSpec attention;
    RopeSpec rope_q, rope_k;
    float norm_eps;
    const Parameter *attention_norm, *q, *k, *v, *output, *ffn_norm, *gate, *up, *down;

    Tensor Forward(Ops& ops, const Tensor& x_TD, const TokenBatch& batch) const;
  };

  const Parameter* AddNorm(const std::string& name);
  const Parameter* AddLinear(const std::string& name, int64_t out, int64_t in, double stddev);
  Block AddBlock(int64_t layer);

  const LlamaOptions options_;
  const std::vector<float> inv_freq_;  // theta^(-2i / head_dim)
  const Parameter* token_embedding_;
  std::vector<Block> blocks_;
  const Parameter* final_norm_;
  const Parameter* head_;
};

}  // namespace plinth::models

#endif  // PLINTH_MODELS_LLAMA_LLAMA_H_
