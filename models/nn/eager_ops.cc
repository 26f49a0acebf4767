#include "plinth/models/nn/eager_ops.h"

#include <algorithm>
#include <utility>

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/kernels/activation/activation.h"
#include "plinth/hardware/kernels/attention/attention.h"
#include "plinth/hardware/kernels/elementwise/elementwise.h"
#include "plinth/hardware/kernels/embedding/embedding.h"
#include "plinth/hardware/kernels/linear/linear.h"
#include "plinth/hardware/kernels/norm/norm.h"
#include "plinth/hardware/kernels/rope/rope.h"
#include "plinth/hardware/kernels/rows/rows.h"

namespace plinth::models {

std::vector<int32_t> CacheRows(const TokenBatch& batch) {
  const KvView& kv = *batch.kv;
  std::vector<int32_t> rows;
  rows.reserve(static_cast<size_t>(batch.tokens()));
  for (int64_t s = 0; s < batch.sequences(); ++s) {
    const int64_t tokens = batch.seq_starts[s + 1] - batch.seq_starts[s];
    for (int64_t i = 0; i < tokens; ++i) {
      const int64_t position = kv.past[s] + i;
      const int64_t page = position / kv.page_tokens;
      CHECK_LT(page, kv.max_pages);
      const int64_t first = int64_t{kv.page_table[s * kv.max_pages + page]} * kv.page_tokens;
      rows.push_back(static_cast<int32_t>(first + position % kv.page_tokens));
    }
  }
  return rows;
}

EagerOps::EagerOps(const KernelContext& ctx, DType packed) : ctx_(ctx), packed_type_(packed) {
  CHECK(packed == DType::kF32 || packed == DType::kBf16) << packed;
}

Tensor EagerOps::NewF32(const Shape& shape) {
  return Tensor::New(*ctx_.scratch, DType::kF32, shape);
}

Tensor EagerOps::NewLike(const Tensor& x) { return NewF32(x.shape()); }

template <typename T>
const TensorView& EagerOps::Stage(Staged<T>& staged, std::span<const T> values, DType dtype) {
  const bool same = !staged.device.empty() && std::ranges::equal(staged.host, values);
  if (!same) {
    staged.host.assign(values.begin(), values.end());
    staged.device = Tensor::New(*ctx_.scratch, dtype, Shape({static_cast<int64_t>(values.size())}));
    ctx_.stream->CopyIn(staged.device.view().data, staged.host.data(),
                        staged.device.view().bytes());
  }
  return staged.device.view();
}

const Tensor& EagerOps::Packed(const Parameter& w_OI) {
  Tensor& packed = packed_[&w_OI];
  if (packed.empty()) {
    const int64_t panels = (w_OI.shape().dim(0) + kLinearPanel - 1) / kLinearPanel;
    packed = Tensor::New(*ctx_.scratch, *packed_type_,
                         Shape({panels, w_OI.shape().dim(1), kLinearPanel}));
    PackLinear({.w_OI = w_OI.value().view(), .packed = packed.view()}, ctx_);
  }
  return packed;
}

Tensor EagerOps::Embedding(const Parameter& table_VD, std::span<const int32_t> ids_T) {
  Tensor y = NewF32({static_cast<int64_t>(ids_T.size()), table_VD.shape().dim(1)});
  plinth::Embedding({.table_VD = table_VD.value().view(),
                     .ids_T = Stage(ids_, ids_T, DType::kI32),
                     .y_TD = y.view()},
                    ctx_);
  return y;
}

Tensor EagerOps::Linear(const Tensor& x_TI, const Parameter& w_OI, const Parameter* bias_O) {
  Tensor y = NewF32({x_TI.dim(0), w_OI.shape().dim(0)});
  const bool packed = packed_type_.has_value();
  plinth::Linear({.x_TI = x_TI.view(),
                  .w = packed ? Packed(w_OI).view() : w_OI.value().view(),
                  .bias_O = bias_O == nullptr ? TensorView{} : bias_O->value().view(),
                  .y_TO = y.view(),
                  .packed = packed},
                 ctx_);
  return y;
}

Tensor EagerOps::LayerNorm(const Tensor& x_TD, const Parameter& gain_D, const Parameter& bias_D,
                           float eps) {
  Tensor y = NewLike(x_TD);
  plinth::LayerNorm({.x_TD = x_TD.view(),
                     .gain_D = gain_D.value().view(),
                     .bias_D = bias_D.value().view(),
                     .y_TD = y.view(),
                     .eps = eps},
                    ctx_);
  return y;
}

Tensor EagerOps::RmsNorm(const Tensor& x_TD, const Parameter& gain_D, float eps) {
  Tensor y = NewLike(x_TD);
  plinth::RmsNorm(
      {.x_TD = x_TD.view(), .gain_D = gain_D.value().view(), .y_TD = y.view(), .eps = eps}, ctx_);
  return y;
}

Tensor EagerOps::Add(const Tensor& a, const Tensor& b) {
  Tensor y = NewLike(a);
  plinth::Add({.a = a.view(), .b = b.view(), .y = y.view()}, ctx_);
  return y;
}

Tensor EagerOps::Gelu(const Tensor& x) {
  Tensor y = NewLike(x);
  plinth::Gelu({.x = x.view(), .y = y.view()}, ctx_);
  return y;
}

Tensor EagerOps::SwiGlu(const Tensor& gate, const Tensor& up) {
  Tensor y = NewLike(gate);
  plinth::SwiGlu({.gate = gate.view(), .up = up.view(), .y = y.view()}, ctx_);
  return y;
}

Tensor EagerOps::Rope(const Tensor& x, const RopeSpec& spec, const TokenBatch& batch) {
  Tensor y = NewLike(x);
  plinth::Rope({.x = x.view(),
                .positions = Stage(positions_, batch.positions, DType::kI32),
                .inv_freq = Stage(inv_freq_, spec.inv_freq, DType::kF32),
                .y = y.view(),
                .heads = spec.heads,
                .head_dim = spec.head_dim},
               ctx_);
  return y;
}

void EagerOps::ExtendCache(const Tensor& k, const Tensor& v, const KvLayer& layer,
                           const TokenBatch& batch) {
  const std::vector<int32_t> rows = CacheRows(batch);
  const TensorView index = Stage(slots_, std::span<const int32_t>(rows), DType::kI32);
  ScatterRows({.x = k.view(), .index = index, .y = layer.k_rows}, ctx_);
  ScatterRows({.x = v.view(), .index = index, .y = layer.v_rows}, ctx_);
}

Tensor EagerOps::Attention(const Tensor& q, const Tensor& k, const Tensor& v,
                           const AttentionSpec& spec, const TokenBatch& batch) {
  Tensor out = NewLike(q);
  AttentionArgs args{.q = q.view(),
                     .k = k.view(),
                     .v = v.view(),
                     .out = out.view(),
                     .q_starts = Stage(starts_, batch.seq_starts, DType::kI32),
                     .heads = spec.heads,
                     .kv_heads = spec.kv_heads,
                     .head_dim = spec.head_dim,
                     .scale = spec.scale};
  if (batch.kv != nullptr) {
    const KvView& kv = *batch.kv;
    CHECK_LT(spec.layer, static_cast<int64_t>(kv.layers.size()));
    const KvLayer& layer = kv.layers[static_cast<size_t>(spec.layer)];
    ExtendCache(k, v, layer, batch);
    args.k = layer.k_rows;
    args.v = layer.v_rows;
    args.past = Stage(past_, kv.past, DType::kI32);
    args.pages =
        Stage(pages_, kv.page_table, DType::kI32).Reshape({batch.sequences(), kv.max_pages});
    args.page_tokens = kv.page_tokens;
  }
  plinth::Attention(args, ctx_);
  return out;
}

Tensor EagerOps::GatherRows(const Tensor& x_TD, std::span<const int32_t> rows_R) {
  Tensor y = NewF32({static_cast<int64_t>(rows_R.size()), x_TD.dim(1)});
  plinth::GatherRows({.x = x_TD.view(), .index = Stage(rows_, rows_R, DType::kI32), .y = y.view()},
                     ctx_);
  return y;
}

}  // namespace plinth::models
