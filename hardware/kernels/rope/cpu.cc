#include "plinth/hardware/kernels/rope/cpu.h"

#include <cmath>
#include <vector>

namespace plinth {
namespace {

// Below this many tokens a second thread costs more than it saves.
constexpr int64_t kTokensPerRange = 8;

void Turn(const float* x, const float* cosine, const float* sine, int64_t half, float* y) {
  for (int64_t i = 0; i < half; ++i) {
    const float a = x[i], b = x[i + half];
    y[i] = a * cosine[i] - b * sine[i];
    y[i + half] = b * cosine[i] + a * sine[i];
  }
}

void RopeRange(const RopeArgs& args, int64_t begin, int64_t end) {
  const int64_t half = args.head_dim / 2;
  const float* inv_freq = args.inv_freq.ptr<float>();
  std::vector<float> cosine(half), sine(half);
  for (int64_t t = begin; t < end; ++t) {
    const double position = args.positions.ptr<int32_t>()[t];
    for (int64_t i = 0; i < half; ++i) {
      const double angle = position * inv_freq[i];
      cosine[i] = static_cast<float>(std::cos(angle));
      sine[i] = static_cast<float>(args.inverse ? -std::sin(angle) : std::sin(angle));
    }
    const float* x = args.x.ptr<float>() + t * args.x.strides[0];
    float* y = args.y.ptr<float>() + t * args.y.strides[0];
    for (int64_t h = 0; h < args.heads; ++h) {
      Turn(x + h * args.head_dim, cosine.data(), sine.data(), half, y + h * args.head_dim);
    }
  }
}

}  // namespace

namespace cpu {

void Rope(const RopeArgs& args, Threads& threads) {
  threads.ParallelFor(args.x.dim(0), kTokensPerRange,
                      [&](int64_t begin, int64_t end) { RopeRange(args, begin, end); });
}

}  // namespace cpu
}  // namespace plinth
