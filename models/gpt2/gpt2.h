// GPT-2 (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019):
// learned positions, LayerNorm before each sub-layer, GELU, biases, tied output projection.
#ifndef PLINTH_MODELS_GPT2_GPT2_H_
#define PLINTH_MODELS_GPT2_GPT2_H_

#include <vector>

#include "plinth/models/nn/model.h"

namespace plinth::models {

struct Gpt2Options {
  ModelDims dims;  // every field set, consistent (models/zoo resolves and checks them)
  float norm_eps = 1e-5f;
};

class Gpt2 : public LanguageModel {
 public:
  explicit Gpt2(const Gpt2Options& options);

  const ModelDims& dims() const override { return options_.dims; }
  Tensor Hidden(Ops& ops, const TokenBatch& batch) const override;
  const Parameter& head() const override { return *token_embedding_; }

 private:
  struct Affine {
    const Parameter* weight;
    const Parameter* bias;
  };
  struct Block {
    AttentionSpec attention;
    float norm_eps;
    Affine attention_norm, q, k, v, output, ffn_norm, up, down;

    Tensor Forward(Ops& ops, const Tensor& x_TD, const TokenBatch& batch) const;
  };

  Affine AddNorm(const std::string& name);
  Affine AddLinear(const std::string& name, int64_t out, int64_t in, double stddev);
  Block AddBlock(int64_t layer);

  const Gpt2Options options_;
  const Parameter* token_embedding_;
  const Parameter* position_embedding_;
  std::vector<Block> blocks_;
  Affine final_norm_;
};

}  // namespace plinth::models

#endif  // PLINTH_MODELS_GPT2_GPT2_H_
