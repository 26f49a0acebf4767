// The devices that this binary can make, by kind.
#ifndef PLINTH_HARDWARE_DEVICE_REGISTRY_H_
#define PLINTH_HARDWARE_DEVICE_REGISTRY_H_

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "plinth/hardware/device/device.h"

namespace plinth {

// "cpu", "sim", "cuda".
std::string_view DeviceKindName(DeviceKind kind);

// A device with its default options; of several GPUs, the first. Errors are those of
// CreateCudaDevice: kUnimplemented without --config=cuda, kUnavailable without a GPU.
absl::StatusOr<std::unique_ptr<Device>> CreateDevice(DeviceKind kind);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_DEVICE_REGISTRY_H_
