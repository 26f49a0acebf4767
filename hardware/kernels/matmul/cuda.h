// The CUDA variant of Matmul: cuBLASLt, found at run time.
#ifndef PLINTH_HARDWARE_KERNELS_MATMUL_CUDA_H_
#define PLINTH_HARDWARE_KERNELS_MATMUL_CUDA_H_

#include "plinth/hardware/kernels/matmul/matmul.h"

namespace plinth::cuda {

// As Matmul (matmul.h), for a context whose stream is a CUDA stream. f32 throughout (no
// TF32). CHECK-fails when libcublasLt cannot be loaded or refuses the shape.
void Matmul(const MatmulArgs& args, KernelContext& ctx);

}  // namespace plinth::cuda

#endif  // PLINTH_HARDWARE_KERNELS_MATMUL_CUDA_H_
