// EagerOps: computes each operation at once. Serving and evaluation.
//
// A row's result does not depend on the other rows of the batch, on the thread count or on
// paging: every kernel used here promises that.
#ifndef PLINTH_MODELS_NN_EAGER_OPS_H_
#define PLINTH_MODELS_NN_EAGER_OPS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "plinth/hardware/kernels/kernel.h"
#include "plinth/models/nn/model.h"
#include "plinth/models/nn/ops.h"

namespace plinth::models {

// Used by one thread at a time. Borrows the context, whose scratch allocator also holds the
// results, and every parameter it has seen; both outlive it. Results must be dropped before
// the allocator goes.
class EagerOps : public Ops {
 public:
  // Weights of Linear are read as they are, so they may change between calls (evaluation
  // while training).
  explicit EagerOps(const KernelContext& ctx) : ctx_(ctx) {}
  // Weights of Linear are packed to `packed` (kF32 or kBf16) when first used and must not
  // change afterwards. kF32 gives the same bits as unpacked weights.
  EagerOps(const KernelContext& ctx, DType packed);

  Tensor Embedding(const Parameter& table_VD, std::span<const int32_t> ids_T) override;
  Tensor Linear(const Tensor& x_TI, const Parameter& w_OI, const Parameter* bias_O) override;
  Tensor LayerNorm(const Tensor& x_TD, const Parameter& gain_D, const Parameter& bias_D,
                   float eps) override;
  Tensor RmsNorm(const Tensor& x_TD, const Parameter& gain_D, float eps) override;
  Tensor Add(const Tensor& a, const Tensor& b) override;
  Tensor Gelu(const Tensor& x) override;
  Tensor SwiGlu(const Tensor& gate, const Tensor& up) override;
  Tensor Rope(const Tensor& x, const RopeSpec& spec, const TokenBatch& batch) override;
  Tensor Attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionSpec& spec,
                   const TokenBatch& batch) override;
  Tensor GatherRows(const Tensor& x_TD, std::span<const int32_t> rows_R) override;

 private:
  // A host array on the device, uploaded again only when its contents differ: the layers
  // of one forward pass share one copy.
  template <typename T>
  struct Staged {
    std::vector<T> host;
    Tensor device;
  };

  Tensor NewLike(const Tensor& x);
  Tensor NewF32(const Shape& shape);
  template <typename T>
  const TensorView& Stage(Staged<T>& staged, std::span<const T> values, DType dtype);
  const Tensor& Packed(const Parameter& w_OI);
  // Writes the batch's keys and values into the rows of the cache that are theirs.
  void ExtendCache(const Tensor& k, const Tensor& v, const KvLayer& layer, const TokenBatch& batch);

  KernelContext ctx_;
  std::optional<DType> packed_type_;
  std::unordered_map<const Parameter*, Tensor> packed_;
  Staged<int32_t> ids_, positions_, rows_, starts_, past_, pages_, slots_;
  Staged<float> inv_freq_;
};

// Cache rows of the batch's tokens, in their order. CHECKs that the pages cover them.
std::vector<int32_t> CacheRows(const TokenBatch& batch);

}  // namespace plinth::models

#endif  // PLINTH_MODELS_NN_EAGER_OPS_H_
