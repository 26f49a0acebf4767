#include "plinth/train/testing/double_ops.h"

#include <algorithm>
#include <cmath>

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/device/cpu/cpu_device.h"
#include "plinth/hardware/testing/sample.h"

namespace plinth::train::testing {
namespace {

using models::Parameter;

double* Row(const Tensor& x, int64_t row) { return x.view().ptr<double>() + row * x.dim(1); }
double* Data(const Tensor& x) { return x.view().ptr<double>(); }

}  // namespace

DoubleOps::DoubleOps(const Values* values)
    : values_(values), device_(CreateCpuDevice()), allocator_(device_.get()) {}

Tensor DoubleOps::New(int64_t rows, int64_t columns) {
  return Tensor::New(allocator_, DType::kF64, {rows, columns});
}

const std::vector<double>& DoubleOps::Value(const Parameter& parameter) const {
  const auto it = values_->find(&parameter);
  CHECK(it != values_->end()) << parameter.name();
  return it->second;
}

Tensor DoubleOps::Embedding(const Parameter& table, std::span<const int32_t> ids) {
  const int64_t width = table.shape().dim(1);
  Tensor y = New(static_cast<int64_t>(ids.size()), width);
  for (size_t t = 0; t < ids.size(); ++t) {
    std::copy_n(Value(table).data() + ids[t] * width, width, Row(y, static_cast<int64_t>(t)));
  }
  return y;
}

Tensor DoubleOps::Linear(const Tensor& x, const Parameter& w, const Parameter* bias) {
  const int64_t out = w.shape().dim(0), in = w.shape().dim(1);
  const double* weights = Value(w).data();
  Tensor y = New(x.dim(0), out);
  for (int64_t t = 0; t < x.dim(0); ++t) {
    for (int64_t o = 0; o < out; ++o) {
      double sum = bias != nullptr ? Value(*bias)[o] : 0;
      for (int64_t i = 0; i < in; ++i) sum += Row(x, t)[i] * weights[o * in + i];
      Row(y, t)[o] = sum;
    }
  }
  return y;
}

Tensor DoubleOps::Normalize(const Tensor& x, const Parameter& gain, const Parameter* bias,
                            float eps) {
  const int64_t width = x.dim(1);
  Tensor y = New(x.dim(0), width);
  for (int64_t t = 0; t < x.dim(0); ++t) {
    const double* row = Row(x, t);
    double mean = 0, square = 0;
    if (bias != nullptr) {
      for (int64_t d = 0; d < width; ++d) mean += row[d] / static_cast<double>(width);
    }
    for (int64_t d = 0; d < width; ++d) square += (row[d] - mean) * (row[d] - mean);
    const double scale = 1 / std::sqrt(square / static_cast<double>(width) + eps);
    for (int64_t d = 0; d < width; ++d) {
      Row(y, t)[d] = (row[d] - mean) * scale * Value(gain)[d] + (bias ? Value(*bias)[d] : 0);
    }
  }
  return y;
}

Tensor DoubleOps::LayerNorm(const Tensor& x, const Parameter& gain, const Parameter& bias,
                            float eps) {
  return Normalize(x, gain, &bias, eps);
}

Tensor DoubleOps::RmsNorm(const Tensor& x, const Parameter& gain, float eps) {
  return Normalize(x, gain, nullptr, eps);
}

Tensor DoubleOps::Add(const Tensor& a, const Tensor& b) {
  Tensor y = New(a.dim(0), a.dim(1));
  for (int64_t i = 0; i < y.elements(); ++i) Data(y)[i] = Data(a)[i] + Data(b)[i];
  return y;
}

Tensor DoubleOps::Gelu(const Tensor& x) {
  Tensor y = New(x.dim(0), x.dim(1));
  const double c = std::sqrt(2 / std::acos(-1.0));
  for (int64_t i = 0; i < y.elements(); ++i) {
    const double z = Data(x)[i];
    Data(y)[i] = z / 2 * (1 + std::tanh(c * (z + 0.044715 * z * z * z)));
  }
  return y;
}

Tensor DoubleOps::SwiGlu(const Tensor& gate, const Tensor& up) {
  Tensor y = New(gate.dim(0), gate.dim(1));
  for (int64_t i = 0; i < y.elements(); ++i) {
    Data(y)[i] = Data(gate)[i] / (1 + std::exp(-Data(gate)[i])) * Data(up)[i];
  }
  return y;
}

Tensor DoubleOps::Rope(const Tensor& x, const models::RopeSpec& spec,
                       const models::TokenBatch& batch) {
  const int64_t half = spec.head_dim / 2;
  Tensor y = New(x.dim(0), x.dim(1));
  for (int64_t t = 0; t < x.dim(0); ++t) {
    for (int64_t i = 0; i < spec.heads * half; ++i) {
      const int64_t at = i / half * spec.head_dim + i % half;
      const double angle = batch.positions[t] * static_cast<double>(spec.inv_freq[i % half]);
      const double a = Row(x, t)[at], b = Row(x, t)[at + half];
      Row(y, t)[at] = a * std::cos(angle) - b * std::sin(angle);
      Row(y, t)[at + half] = a * std::sin(angle) + b * std::cos(angle);
    }
  }
  return y;
}

Tensor DoubleOps::Attention(const Tensor& q, const Tensor& k, const Tensor& v,
                            const models::AttentionSpec& spec, const models::TokenBatch& batch) {
  const int64_t width = spec.head_dim;
  Tensor out = New(q.dim(0), q.dim(1));
  std::fill_n(Data(out), out.elements(), 0.0);
  for (int64_t s = 0; s < batch.sequences(); ++s) {
    const int64_t first = batch.seq_starts[s];
    for (int64_t t = first; t < batch.seq_starts[s + 1]; ++t) {
      for (int64_t h = 0; h < spec.heads; ++h) {
        const int64_t q_at = h * width, kv_at = h / (spec.heads / spec.kv_heads) * width;
        std::vector<double> p;
        for (int64_t j = first; j <= t; ++j) {
          double dot = 0;
          for (int64_t d = 0; d < width; ++d) dot += Row(q, t)[q_at + d] * Row(k, j)[kv_at + d];
          p.push_back(std::exp(spec.scale * dot));
        }
        double total = 0;
        for (const double e : p) total += e;
        for (int64_t j = first; j <= t; ++j) {
          for (int64_t d = 0; d < width; ++d) {
            Row(out, t)[q_at + d] += p[j - first] / total * Row(v, j)[kv_at + d];
          }
        }
      }
    }
  }
  return out;
}

Tensor DoubleOps::GatherRows(const Tensor& x, std::span<const int32_t> rows) {
  Tensor y = New(static_cast<int64_t>(rows.size()), x.dim(1));
  for (size_t r = 0; r < rows.size(); ++r) {
    std::copy_n(Row(x, rows[r]), x.dim(1), Row(y, static_cast<int64_t>(r)));
  }
  return y;
}

double HeadLoss(const Tensor& hidden, const std::vector<double>& head,
                std::span<const int32_t> targets) {
  const int64_t width = hidden.dim(1);
  const int64_t vocabulary = static_cast<int64_t>(head.size()) / width;
  double loss = 0;
  for (int64_t t = 0; t < hidden.dim(0); ++t) {
    if (targets[t] < 0) continue;
    double total = 0, target = 0;
    for (int64_t v = 0; v < vocabulary; ++v) {
      double logit = 0;
      for (int64_t d = 0; d < width; ++d) logit += Row(hidden, t)[d] * head[v * width + d];
      total += std::exp(logit);
      if (v == targets[t]) target = logit;
    }
    loss += std::log(total) - target;
  }
  return loss;
}

DoubleOps::Values CentralDifferences(DoubleOps::Values& values,
                                     const std::function<double()>& loss) {
  DoubleOps::Values gradients;
  for (auto& [parameter, elements] : values) {
    gradients[parameter] = plinth::testing::CentralDifferences(elements, loss);
  }
  return gradients;
}

}  // namespace plinth::train::testing
