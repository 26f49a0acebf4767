// The simulated accelerator: a device without hardware that is strict where a real one is.
//
//   device addresses ──► a reserved range: host code that reads one dies with SIGSEGV
//          │ AddressMap::ToHost (inside Stream::RunOnHost only)
//          ▼
//   host memory at the same offset ──► where copies and kernels work
//
// What passes here does not touch device memory from the host, keeps its blocks until the
// stream is done with them, and orders its streams by events: the rules of `cuda`.
#ifndef PLINTH_HARDWARE_DEVICE_SIM_SIM_DEVICE_H_
#define PLINTH_HARDWARE_DEVICE_SIM_SIM_DEVICE_H_

#include <chrono>
#include <cstdint>
#include <memory>

#include "plinth/hardware/device/device.h"

namespace plinth {

struct SimOptions {
  // Device memory. Of the host's, only what is allocated is used.
  int64_t memory_bytes = int64_t{64} << 30;
  // Before each kernel: code that forgets to wait for a stream fails every time.
  std::chrono::microseconds launch_delay{0};
  // Bytes per second of copies to and from the host; 0 means as fast as memory is.
  int64_t copy_bytes_per_second = 0;
  // The kernel launch, counted from 1 over the whole device, that fails instead of running;
  // 0 means none. The rest of that stream's queue is skipped until Synchronize has reported
  // kInternal.
  int64_t failing_launch = 0;
};

// Each stream is a thread with a queue. Kernels of all streams run one at a time, since
// they share one team of threads; copies overlap with them.
//
// Memory is 0xff when allocated, NaN in every float format, and so is the target of CopyOut
// until the copy has run: reading too early shows. Whoever uses a block after Free dies:
// ToHost, copies and fills CHECK that addresses lie in live blocks, and the memory itself
// becomes inaccessible. Blocks are whole pages with a gap after each, so running far past
// the end of one dies too. Destroying the device CHECKs that every block was freed.
std::unique_ptr<Device> CreateSimDevice(const SimOptions& options = {});

}  // namespace plinth

#endif  // PLINTH_HARDWARE_DEVICE_SIM_SIM_DEVICE_H_
