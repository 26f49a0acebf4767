#include "plinth/hardware/kernels/attention/reference.h"

#include <algorithm>
#include <cmath>

namespace plinth::reference {
namespace {

double Dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

std::vector<double> Attention::Probabilities(int64_t first, int64_t row, int64_t head) {
  const int64_t D = head_dim, kv_head = head / (heads / kv_heads);
  std::vector<double> p;
  for (int64_t j = first; j <= row; ++j) {
    p.push_back(scale * Dot(&q[(row * heads + head) * D], &k[(j * kv_heads + kv_head) * D], D));
  }
  const double top = *std::max_element(p.begin(), p.end());
  double sum = 0;
  for (double& value : p) sum += value = std::exp(value - top);
  for (double& value : p) value /= sum;
  const int64_t T = q_starts.back();
  lse_HT[head * T + row] = top + std::log(sum);
  return p;
}

void Attention::Forward() {
  const int64_t T = q_starts.back(), D = head_dim;
  out.assign(T * heads * D, 0);
  lse_HT.assign(heads * T, 0);
  for (size_t s = 0; s + 1 < q_starts.size(); ++s) {
    for (int64_t row = q_starts[s]; row < q_starts[s + 1]; ++row) {
      for (int64_t h = 0; h < heads; ++h) {
        const auto p = Probabilities(q_starts[s], row, h);
        for (size_t j = 0; j < p.size(); ++j) {
          const double* value = &v[((q_starts[s] + j) * kv_heads + h / (heads / kv_heads)) * D];
          for (int64_t i = 0; i < D; ++i) out[(row * heads + h) * D + i] += p[j] * value[i];
        }
      }
    }
  }
}

void Attention::Backward() {
  Forward();
  const int64_t D = head_dim;
  dq.assign(q.size(), 0), dk.assign(k.size(), 0), dv.assign(v.size(), 0);
  for (size_t s = 0; s + 1 < q_starts.size(); ++s) {
    for (int64_t row = q_starts[s]; row < q_starts[s + 1]; ++row) {
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t query = (row * heads + h) * D;
        const double delta = Dot(&dout[query], &out[query], D);
        const auto p = Probabilities(q_starts[s], row, h);
        for (size_t j = 0; j < p.size(); ++j) {
          const int64_t key = ((q_starts[s] + j) * kv_heads + h / (heads / kv_heads)) * D;
          const double ds = scale * p[j] * (Dot(&dout[query], &v[key], D) - delta);
          for (int64_t i = 0; i < D; ++i) {
            dq[query + i] += ds * k[key + i];
            dk[key + i] += ds * q[query + i];
            dv[key + i] += p[j] * dout[query + i];
          }
        }
      }
    }
  }
}

}  // namespace plinth::reference
