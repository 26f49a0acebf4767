// Stands in for cuda_cublaslt.cc in a binary built without --config=cuda, which cannot have
// made a CUDA stream.
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/kernels/matmul/cuda.h"

namespace plinth::cuda {

void Matmul(const MatmulArgs&, KernelContext&) { CHECK(false) << "built without CUDA"; }

}  // namespace plinth::cuda
