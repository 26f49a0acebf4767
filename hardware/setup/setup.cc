#include "plinth/hardware/setup/setup.h"

#include <algorithm>

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/device/registry.h"
#include "plinth/hardware/probe/probe.h"

namespace plinth {

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(const config::HardwareConfig& config) {
  switch (config.device()) {
    case config::SIM:
      return CreateDevice(DeviceKind::kSim);
    case config::CUDA:
      return CreateDevice(DeviceKind::kCuda);
    default:
      return CreateDevice(DeviceKind::kCpu);
  }
}

absl::StatusOr<int> KernelThreads(const config::HardwareConfig& config, int ranks_on_host) {
  CHECK_GE(ranks_on_host, 1);
  if (config.threads() > 0) return config.threads();
  // An empty table of GPUs: counting CPUs need not wake the driver.
  ASSIGN_OR_RETURN(const probe::MachineReport machine,
                   probe::Probe({.nvidia = probe::NvidiaTable{}}));
  return std::max(1, machine.usable.cpu_count / ranks_on_host);
}

}  // namespace plinth
