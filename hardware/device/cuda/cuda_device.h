// NVIDIA GPUs behind the Device contract. No CUDA types here: this header is the same in
// binaries built with and without --config=cuda, and the driver is found at run time, so a
// binary built with it also starts on a machine that has neither GPU nor driver.
#ifndef PLINTH_HARDWARE_DEVICE_CUDA_CUDA_DEVICE_H_
#define PLINTH_HARDWARE_DEVICE_CUDA_CUDA_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "plinth/hardware/device/device.h"

namespace plinth {

// GPU number `ordinal` of those that CUDA_VISIBLE_DEVICES leaves. kUnimplemented: built
// without --config=cuda. kUnavailable: no driver or no such GPU; says what CUDA said.
absl::StatusOr<std::unique_ptr<Device>> CreateCudaDevice(int ordinal);

// The cudaStream_t of a stream of a CUDA device (CHECKed), for CUDA kernels only.
void* CudaNativeStream(Stream& stream);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_DEVICE_CUDA_CUDA_DEVICE_H_
