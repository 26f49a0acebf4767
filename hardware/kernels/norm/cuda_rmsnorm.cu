#include <cuda_runtime.h>

#include "hardware/kernels/norm/cuda.h"

namespace plinth::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kRowsPerBlock = 4;

// Lanes take every 32nd element; partial sums meet in a fixed tree, so a row's result does
// not depend on how many rows there are.
__global__ void RmsNormKernel(RmsNormLaunch p) {
  const int64_t row = int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.y;
  if (row >= p.rows) return;
  const float* x = p.x + row * p.x_stride;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < p.width; i += kWarp) sum = fmaf(x[i], x[i], sum);
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  }
  const float rstd = 1.0f / sqrtf(sum / static_cast<float>(p.width) + p.eps);
  float* y = p.y + row * p.y_stride;
  for (int64_t i = threadIdx.x; i < p.width; i += kWarp) y[i] = x[i] * rstd * p.gain[i];
  if (p.rstd != nullptr && threadIdx.x == 0) p.rstd[row] = rstd;
}

}  // namespace

void RmsNorm(const RmsNormLaunch& launch, void* stream) {
  if (launch.rows == 0) return;
  const dim3 block(kWarp, kRowsPerBlock);
  const auto blocks = static_cast<unsigned>((launch.rows + kRowsPerBlock - 1) / kRowsPerBlock);
  // A launch error stays with the stream: Synchronize reports it.
  RmsNormKernel<<<blocks, block, 0, static_cast<cudaStream_t>(stream)>>>(launch);
}

}  // namespace plinth::cuda
