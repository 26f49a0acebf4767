// Stands in for cuda_rmsnorm.cu in a binary built without --config=cuda, which cannot have
// made a CUDA stream.
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/kernels/norm/cuda.h"

namespace plinth::cuda {

void RmsNorm(const RmsNormLaunch&, void*) { CHECK(false) << "built without CUDA"; }

}  // namespace plinth::cuda
