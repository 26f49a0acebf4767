// Ops: the operations that model code is written against.
//
// A model is written once, for one device, as calls on an Ops. Who implements it decides
// what the same lines do:
//   EagerOps   models/nn         computes (serving, evaluation); one row's result does not
//                                depend on the other rows of the batch
//   TapeOps    train/autograd    computes and records what backward needs
// An operation that is composed of others may have a body made of them here: that body is the
// reference, an override is an optimisation.
#ifndef PLINTH_MODELS_NN_OPS_H_
#define PLINTH_MODELS_NN_OPS_H_

#include <functional>
#include <span>

#include "plinth/hardware/device/tensor.h"
#include "plinth/models/nn/parameter.h"
#include "plinth/models/nn/token_batch.h"

namespace plinth::models {

// Causal attention of one layer. scale multiplies q.k before softmax.
struct AttentionSpec {
  int64_t layer = 0;  // which KvLayer of the batch's cache
  int64_t heads = 0;
  int64_t kv_heads = 0;  // divides heads
  int64_t head_dim = 0;
  float scale = 0;
};

struct RopeSpec {
  int64_t heads = 0;
  int64_t head_dim = 0;
  std::span<const float> inv_freq;  // head_dim / 2, host memory that outlives the model
};

// Tensors are f32, [tokens, features]. Shapes are contracts (CHECK). Results live as long
// as a handle to them. One Ops is used by one thread at a time.
class Ops {
 public:
  virtual ~Ops() = default;

  // [T, D]: rows `ids` of the table [V, D]; ids are the caller's to keep in range.
  virtual Tensor Embedding(const Parameter& table_VD, std::span<const int32_t> ids_T) = 0;
  // [T, O] = x . w^T + bias; bias may be null.
  virtual Tensor Linear(const Tensor& x_TI, const Parameter& w_OI, const Parameter* bias_O) = 0;
  virtual Tensor LayerNorm(const Tensor& x_TD, const Parameter& gain_D, const Parameter& bias_D,
                           float eps) = 0;
  virtual Tensor RmsNorm(const Tensor& x_TD, const Parameter& gain_D, float eps) = 0;
  virtual Tensor Add(const Tensor& a, const Tensor& b) = 0;
  virtual Tensor Gelu(const Tensor& x) = 0;
  virtual Tensor SwiGlu(const Tensor& gate, const Tensor& up) = 0;
  // Turns each head of x [T, heads*D] by its token's position in the batch.
  virtual Tensor Rope(const Tensor& x, const RopeSpec& spec, const TokenBatch& batch) = 0;
  // [T, heads*D] from q [T, heads*D], k and v [T, kv_heads*D]; extends the cache of
  // batch.kv when there is one.
  virtual Tensor Attention(const Tensor& q, const Tensor& k, const Tensor& v,
                           const AttentionSpec& spec, const TokenBatch& batch) = 0;
  // [R, D]: rows of x by index.
  virtual Tensor GatherRows(const Tensor& x_TD, std::span<const int32_t> rows_R) = 0;

  // Runs `body`, whose intermediate results may be dropped and computed again in backward.
  virtual Tensor Checkpoint(const std::function<Tensor(Ops&)>& body) { return body(*this); }
};

}  // namespace plinth::models

#endif  // PLINTH_MODELS_NN_OPS_H_
