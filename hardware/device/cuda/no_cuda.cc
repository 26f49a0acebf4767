// Stands in for cuda_device.cc in a binary built without --config=cuda.
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/device/cuda/cuda_device.h"

namespace plinth {

absl::StatusOr<std::unique_ptr<Device>> CreateCudaDevice(int) {
  return absl::UnimplementedError("this binary was built without CUDA: build with --config=cuda");
}

void* CudaNativeStream(Stream& stream) {
  CHECK(false) << "a stream of " << stream.device().name() << " is not a CUDA stream";
  return nullptr;
}

}  // namespace plinth
