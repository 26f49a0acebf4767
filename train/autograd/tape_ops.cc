#include "plinth/train/autograd/tape_ops.h"

#include <vector>

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/kernels/activation/activation.h"
#include "plinth/hardware/kernels/attention/attention.h"
#include "plinth/hardware/kernels/elementwise/elementwise.h"
#include "plinth/hardware/kernels/embedding/embedding.h"
#include "plinth/hardware/kernels/matmul/matmul.h"
#include "plinth/hardware/kernels/norm/norm.h"
#include "plinth/hardware/kernels/rope/rope.h"
#include "plinth/hardware/kernels/rows/rows.h"

namespace plinth::train {

using models::Parameter;

TapeOps::TapeOps(KernelContext* ctx, CachingAllocator* allocator, GradientSink* sink,
                 TapeOptions options)
    : ctx_(ctx), allocator_(allocator), sink_(sink), options_(options), copies_(ctx, allocator) {}

Tensor TapeOps::Embedding(const Parameter& table_VD, std::span<const int32_t> ids_T) {
  const Tensor ids = copies_.Of(ids_T);
  Tensor y = New({ids.elements(), table_VD.shape().dim(1)});
  plinth::Embedding({.table_VD = table_VD.value().view(), .ids_T = ids.view(), .y_TD = y.view()},
                    *ctx_);
  CountUse(table_VD);
  Record(y, [this, &table_VD, ids](const Tensor& dy) {
    EmbeddingBackward({.ids_T = ids.view(), .dy_TD = dy.view(), .dtable_VD = SumPlace(table_VD)},
                      *ctx_);
    EndUse(table_VD);
  });
  return y;
}

Tensor TapeOps::Linear(const Tensor& x, const Parameter& w, const Parameter* bias) {
  Tensor y = New({x.dim(0), w.shape().dim(0)});
  if (bias != nullptr) {
    // Each row starts as the bias, and the product is added to it.
    const std::vector<int32_t> first_row(static_cast<size_t>(x.dim(0)), 0);
    const Tensor bias_row = bias->value().Reshape({1, w.shape().dim(0)});
    plinth::GatherRows({.x = bias_row.view(), .index = copies_.Of(first_row).view(), .y = y.view()},
                       *ctx_);
    CountUse(*bias);
  }
  Matmul({.a = x.view(),
          .b = w.value().view(),
          .c_MN = y.view(),
          .transpose_b = true,
          .accumulate = bias != nullptr},
         *ctx_);
  CountUse(w);
  Record(y, [this, x, &w, bias](const Tensor& dy) {
    const GradientSink::Place dw = sink_->Accumulate(w);
    Matmul({.a = dy.view(),
            .b = x.view(),
            .c_MN = dw.view,
            .transpose_a = true,
            .accumulate = dw.holds_sum},
           *ctx_);
    EndUse(w);
    if (bias != nullptr) {
      ColumnSum({.x_TO = dy.view(), .y_O = SumPlace(*bias)}, *ctx_);
      EndUse(*bias);
    }
    if (!Wanted(x.id())) return;
    Tensor dx = New(x.shape());
    Matmul({.a = dy.view(), .b = w.value().view(), .c_MN = dx.view()}, *ctx_);
    AddTo(x.id(), dx);
  });
  return y;
}

Tensor TapeOps::LayerNorm(const Tensor& x, const Parameter& gain, const Parameter& bias,
                          float eps) {
  Tensor y = New(x.shape());
  Tensor mean = New({x.dim(0)});
  Tensor rstd = New({x.dim(0)});
  plinth::LayerNorm({.x_TD = x.view(),
                     .gain_D = gain.value().view(),
                     .bias_D = bias.value().view(),
                     .y_TD = y.view(),
                     .mean_T = mean.view(),
                     .rstd_T = rstd.view(),
                     .eps = eps},
                    *ctx_);
  CountUse(gain);
  CountUse(bias);
  Record(y, [this, x, mean, rstd, &gain, &bias](const Tensor& dy) {
    Tensor dx = New(x.shape());
    LayerNormBackward({.x_TD = x.view(),
                       .gain_D = gain.value().view(),
                       .mean_T = mean.view(),
                       .rstd_T = rstd.view(),
                       .dy_TD = dy.view(),
                       .dx_TD = dx.view(),
                       .dgain_D = SumPlace(gain),
                       .dbias_D = SumPlace(bias)},
                      *ctx_);
    EndUse(gain);
    EndUse(bias);
    AddTo(x.id(), dx);
  });
  return y;
}

Tensor TapeOps::RmsNorm(const Tensor& x, const Parameter& gain, float eps) {
  Tensor y = New(x.shape());
  Tensor rstd = New({x.dim(0)});
  plinth::RmsNorm({.x_TD = x.view(),
                   .gain_D = gain.value().view(),
                   .y_TD = y.view(),
                   .rstd_T = rstd.view(),
                   .eps = eps},
                  *ctx_);
  CountUse(gain);
  Record(y, [this, x, rstd, &gain](const Tensor& dy) {
    Tensor dx = New(x.shape());
    RmsNormBackward({.x_TD = x.view(),
                     .gain_D = gain.value().view(),
                     .rstd_T = rstd.view(),
                     .dy_TD = dy.view(),
                     .dx_TD = dx.view(),
                     .dgain_D = SumPlace(gain)},
                    *ctx_);
    EndUse(gain);
    AddTo(x.id(), dx);
  });
  return y;
}

Tensor TapeOps::Add(const Tensor& a, const Tensor& b) {
  Tensor y = New(a.shape());
  plinth::Add({.a = a.view(), .b = b.view(), .y = y.view()}, *ctx_);
  // Both operands share dy; AddTo never writes into a gradient that it was given.
  Record(y, [this, a = a.id(), b = b.id()](const Tensor& dy) {
    AddTo(a, dy);
    AddTo(b, dy);
  });
  return y;
}

Tensor TapeOps::Gelu(const Tensor& x) {
  Tensor y = New(x.shape());
  plinth::Gelu({.x = x.view(), .y = y.view()}, *ctx_);
  Record(y, [this, x](const Tensor& dy) {
    Tensor dx = New(x.shape());
    GeluBackward({.x = x.view(), .dy = dy.view(), .dx = dx.view()}, *ctx_);
    AddTo(x.id(), dx);
  });
  return y;
}

Tensor TapeOps::SwiGlu(const Tensor& gate, const Tensor& up) {
  Tensor y = New(gate.shape());
  plinth::SwiGlu({.gate = gate.view(), .up = up.view(), .y = y.view()}, *ctx_);
  Record(y, [this, gate, up](const Tensor& dy) {
    Tensor dgate = New(gate.shape());
    Tensor dup = New(up.shape());
    SwiGluBackward({.gate = gate.view(),
                    .up = up.view(),
                    .dy = dy.view(),
                    .dgate = dgate.view(),
                    .dup = dup.view()},
                   *ctx_);
    AddTo(gate.id(), dgate);
    AddTo(up.id(), dup);
  });
  return y;
}

Tensor TapeOps::Rope(const Tensor& x, const models::RopeSpec& spec,
                     const models::TokenBatch& batch) {
  const Tensor positions = copies_.Of(batch.positions);
  const Tensor inv_freq = copies_.Of(spec.inv_freq);
  Tensor y = New(x.shape());
  RopeArgs args = {.x = x.view(),
                   .positions = positions.view(),
                   .inv_freq = inv_freq.view(),
                   .y = y.view(),
                   .heads = spec.heads,
                   .head_dim = spec.head_dim};
  plinth::Rope(args, *ctx_);
  Record(y, [this, args, positions, inv_freq, x = x.id()](const Tensor& dy) mutable {
    Tensor dx = New(dy.shape());
    args.x = dy.view();
    args.y = dx.view();
    args.inverse = true;
    plinth::Rope(args, *ctx_);
    AddTo(x, dx);
  });
  return y;
}

Tensor TapeOps::Attention(const Tensor& q, const Tensor& k, const Tensor& v,
                          const models::AttentionSpec& spec, const models::TokenBatch& batch) {
  CHECK(batch.kv == nullptr) << "training keeps no cache";
  const Tensor starts = copies_.Of(batch.seq_starts);
  Tensor out = New(q.shape());
  Tensor lse = New({spec.heads, q.dim(0)});
  plinth::Attention({.q = q.view(),
                     .k = k.view(),
                     .v = v.view(),
                     .out = out.view(),
                     .lse_HT = lse.view(),
                     .q_starts = starts.view(),
                     .heads = spec.heads,
                     .kv_heads = spec.kv_heads,
                     .head_dim = spec.head_dim,
                     .scale = spec.scale},
                    *ctx_);
  Record(out, [this, q, k, v, out, lse, starts, spec](const Tensor& dout) {
    Tensor dq = New(q.shape());
    Tensor dk = New(k.shape());
    Tensor dv = New(v.shape());
    AttentionBackward({.q = q.view(),
                       .k = k.view(),
                       .v = v.view(),
                       .out = out.view(),
                       .lse_HT = lse.view(),
                       .q_starts = starts.view(),
                       .dout = dout.view(),
                       .dq = dq.view(),
                       .dk = dk.view(),
                       .dv = dv.view(),
                       .heads = spec.heads,
                       .kv_heads = spec.kv_heads,
                       .head_dim = spec.head_dim,
                       .scale = spec.scale},
                      *ctx_);
    AddTo(q.id(), dq);
    AddTo(k.id(), dk);
    AddTo(v.id(), dv);
  });
  return out;
}

Tensor TapeOps::GatherRows(const Tensor& x, std::span<const int32_t> rows_R) {
  const Tensor rows = copies_.Of(rows_R);
  Tensor y = New({rows.elements(), x.dim(1)});
  plinth::GatherRows({.x = x.view(), .index = rows.view(), .y = y.view()}, *ctx_);
  Record(y, [this, rows, x = x.id(), shape = x.shape()](const Tensor& dy) {
    Tensor dx = New(shape);
    ctx_->stream->FillZero(dx.view().data, dx.view().bytes());
    AddRows({.x = dy.view(), .index = rows.view(), .y = dx.view()}, *ctx_);
    AddTo(x, dx);
  });
  return y;
}

Tensor TapeOps::Checkpoint(const std::function<Tensor(models::Ops&)>& body) {
  // Inside a dropped body the outer checkpoint recomputes everything, this one too.
  if (!options_.recompute || dropping_) return body(*this);
  dropping_ = true;
  Tensor y = body(*this);
  dropping_ = false;
  Record(y, [this, body](const Tensor& dy) {
    const size_t below = nodes_.size();
    const Tensor again = body(*this);
    AddTo(again.id(), dy);
    Unwind(below);
  });
  return y;
}

void TapeOps::Backward(const Tensor& output, const Tensor& gradient) {
  CHECK(Wanted(output.id())) << "the output was not computed on this tape";
  CHECK_EQ(output.shape(), gradient.shape());
  AddTo(output.id(), gradient);
  backward_ = true;
  Unwind(0);
  backward_ = false;
  CHECK(uses_.empty()) << "a parameter's gradient is incomplete";
  tracked_.clear();
  copies_.Clear();
}

GradientSink::Place TapeOps::BeginUse(const Parameter& parameter) {
  CountUse(parameter);
  return sink_->Accumulate(parameter);
}

void TapeOps::EndUse(const Parameter& parameter) {
  const auto it = uses_.find(&parameter);
  CHECK(it != uses_.end()) << parameter.name();
  if (--it->second > 0) return;
  uses_.erase(it);
  sink_->Complete(parameter);
}

void TapeOps::CountUse(const Parameter& parameter) {
  if (!backward_) ++uses_[&parameter];
}

void TapeOps::Record(const Tensor& output, BackwardFn backward) {
  if (dropping_) return;
  tracked_.insert(output.id());
  nodes_.push_back({output.id(), std::move(backward)});
}

void TapeOps::AddTo(uint64_t value, const Tensor& gradient) {
  if (!Wanted(value)) return;
  const auto [it, first] = gradients_.try_emplace(value, gradient);
  if (first) return;
  // A new tensor: the first contribution may be another value's gradient as well.
  Tensor sum = New(gradient.shape());
  plinth::Add({.a = it->second.view(), .b = gradient.view(), .y = sum.view()}, *ctx_);
  it->second = sum;
}

void TapeOps::Unwind(size_t remaining) {
  while (nodes_.size() > remaining) {
    Node node = std::move(nodes_.back());
    nodes_.pop_back();
    auto gradient = gradients_.extract(node.output);
    CHECK(!gradient.empty()) << "the output does not depend on a recorded value";
    tracked_.erase(node.output);
    node.backward(gradient.mapped());
  }
}

TensorView TapeOps::SumPlace(const Parameter& parameter) {
  const GradientSink::Place place = sink_->Accumulate(parameter);
  if (!place.holds_sum) ctx_->stream->FillZero(place.view.data, place.view.bytes());
  return place.view;
}

}  // namespace plinth::train
