// LanguageModel: what training, serving and conversion know of a model.
#ifndef PLINTH_MODELS_NN_MODEL_H_
#define PLINTH_MODELS_NN_MODEL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plinth/models/nn/ops.h"

namespace plinth::models {

// Sizes that a runtime needs to feed a model and to hold its cache.
struct ModelDims {
  int64_t vocab_size = 0;
  int64_t layers = 0;
  int64_t model_dim = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn_dim = 0;
  int64_t max_positions = 0;

  // Widths of a token's queries, and of its keys or values: the heads side by side.
  int64_t q_dim() const { return heads * head_dim; }
  int64_t kv_dim() const { return kv_heads * head_dim; }
};

// What the architectures have in common. Attention of a layer: scores are scaled by
// 1 / sqrt(head_dim).
AttentionSpec AttentionOf(const ModelDims& dims, int64_t layer);
// Standard deviation of a fresh weight matrix (Radford et al., 2019), and of one that writes to the
// residual stream, which adds two of these in each layer: their sum keeps its variance.
inline constexpr double kInitStddev = 0.02;
double ResidualInitStddev(const ModelDims& dims);

// Owns its parameters. const methods are safe from several threads, each with its own Ops.
class LanguageModel {
 public:
  virtual ~LanguageModel() = default;

  virtual const ModelDims& dims() const = 0;
  // [R, D]: final normalised hidden states of the rows the batch asks for.
  virtual Tensor Hidden(Ops& ops, const TokenBatch& batch) const = 0;
  // Output projection [V, D]; the token embedding itself when tied.
  virtual const Parameter& head() const = 0;
  // [R, V].
  Tensor Logits(Ops& ops, const TokenBatch& batch) const {
    return ops.Linear(Hidden(ops, batch), head(), nullptr);
  }

  // Every parameter once, in a fixed order that depends on the architecture only.
  std::span<Parameter* const> parameters() const { return parameters_; }

 protected:
  // Creates a parameter owned by the model; called by constructors in forward order.
  Parameter& Add(std::string name, const Shape& shape, Init init, bool decays);

 private:
  std::vector<std::unique_ptr<Parameter>> owned_;
  std::vector<Parameter*> parameters_;
};

// Gives every parameter a value on the allocator's device, drawn from its Init. Draws are
// keyed by (seed, parameter name, element), so they do not depend on order or layout.
void Initialize(LanguageModel& model, uint64_t seed, CachingAllocator& allocator, Stream& stream);

}  // namespace plinth::models

#endif  // PLINTH_MODELS_NN_MODEL_H_
