// CountingDevice: a device that computes nothing and has no memory, but hands out addresses.
//
// Code that touches its data only through streams runs on it unchanged, and an allocator on it
// then tells exactly what that code would take from a real device, for a model of any size.
#ifndef PLINTH_TOOLS_PLAN_COUNTING_DEVICE_H_
#define PLINTH_TOOLS_PLAN_COUNTING_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "plinth/hardware/device/device.h"

namespace plinth::tools {

// Its kind is kSim: kernels take the host path, whose work is dropped. What is copied out stays
// as the caller had it. Used by one thread.
class CountingDevice : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::kSim; }
  std::string name() const override { return "counting"; }
  bool host_accessible() const override { return false; }

  // Never fails.
  absl::StatusOr<void*> Allocate(int64_t bytes) override;
  void Free(void*, int64_t) override {}
  std::unique_ptr<Stream> CreateStream() override;

 private:
  // No address is given out twice; 2^62 bytes last for as long as a process lives.
  uintptr_t next_ = uintptr_t{1} << 62;
};

}  // namespace plinth::tools

#endif  // PLINTH_TOOLS_PLAN_COUNTING_DEVICE_H_
