// CUDA variants of the norms. Called for streams of CUDA devices only.
#ifndef PLINTH_HARDWARE_KERNELS_NORM_CUDA_H_
#define PLINTH_HARDWARE_KERNELS_NORM_CUDA_H_

#include <cstdint>

namespace plinth::cuda {

// One warp per row. Strides in elements; rstd may be null. `stream` is a cudaStream_t.
struct RmsNormLaunch {
  const float* x;
  const float* gain;
  float* y;
  float* rstd;
  int64_t rows, width;
  int64_t x_stride, y_stride;
  float eps;
};
void RmsNorm(const RmsNormLaunch& launch, void* stream);

}  // namespace plinth::cuda

#endif  // PLINTH_HARDWARE_KERNELS_NORM_CUDA_H_
