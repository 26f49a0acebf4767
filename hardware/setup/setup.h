// What the hardware section of a config means on this machine.
#ifndef PLINTH_HARDWARE_SETUP_SETUP_H_
#define PLINTH_HARDWARE_SETUP_SETUP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "plinth/config/hardware.pb.h"
#include "plinth/hardware/device/device.h"

namespace plinth {

// The configured device. Errors as CreateDevice (hardware/device/registry.h).
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(const config::HardwareConfig& config);

// Threads of one process's kernels: as configured, or this process's fair share of the CPUs
// that control groups and affinity leave usable, at least 1. ranks_on_host >= 1. Errors:
// those of probing the machine.
absl::StatusOr<int> KernelThreads(const config::HardwareConfig& config, int ranks_on_host);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_SETUP_SETUP_H_
