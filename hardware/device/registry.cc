#include "plinth/hardware/device/registry.h"

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/device/cpu/cpu_device.h"
#include "plinth/hardware/device/cuda/cuda_device.h"
#include "plinth/hardware/device/sim/sim_device.h"

namespace plinth {

std::string_view DeviceKindName(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kCpu:
      return "cpu";
    case DeviceKind::kSim:
      return "sim";
    case DeviceKind::kCuda:
      return "cuda";
  }
  CHECK(false) << "device kind " << static_cast<int>(kind);
  return "";
}

absl::StatusOr<std::unique_ptr<Device>> CreateDevice(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kCpu:
      return CreateCpuDevice();
    case DeviceKind::kSim:
      return CreateSimDevice();
    case DeviceKind::kCuda:
      return CreateCudaDevice(0);
  }
  CHECK(false) << "device kind " << static_cast<int>(kind);
}

}  // namespace plinth
