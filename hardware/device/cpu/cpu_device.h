// The host as a device: memory is ordinary, streams run their work inside the call.
#ifndef PLINTH_HARDWARE_DEVICE_CPU_CPU_DEVICE_H_
#define PLINTH_HARDWARE_DEVICE_CPU_CPU_DEVICE_H_

#include <memory>

#include "plinth/hardware/device/device.h"

namespace plinth {

// Blocks of 2 MiB and more ask for transparent huge pages.
std::unique_ptr<Device> CreateCpuDevice();

}  // namespace plinth

#endif  // PLINTH_HARDWARE_DEVICE_CPU_CPU_DEVICE_H_
