// Device, Stream and Event: where memory lies and in which order work on it runs.
//
// Three devices share this contract: `cpu` (host memory, work runs inside the call),
// `sim` (host threads behind a wall: its addresses cannot be dereferenced by host code,
// its streams are asynchronous) and `cuda`. Code that passes on `sim` touches device
// memory only through a stream, so it holds for `cuda` as well.
#ifndef PLINTH_HARDWARE_DEVICE_DEVICE_H_
#define PLINTH_HARDWARE_DEVICE_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace plinth {

enum class DeviceKind { kCpu, kSim, kCuda };

class Stream;

// Thread-safe. Outlives every stream and allocation made from it.
class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceKind kind() const = 0;
  // "cpu", "sim", "cuda:0".
  virtual std::string name() const = 0;
  // True when host code may dereference this device's addresses directly.
  virtual bool host_accessible() const = 0;

  // At least `bytes` bytes aligned to 64, uninitialised. kResourceExhausted states the
  // bytes wanted and available. `bytes` may be 0 (a distinct non-null address).
  virtual absl::StatusOr<void*> Allocate(int64_t bytes) = 0;
  // No queued work may still use the block.
  virtual void Free(void* data, int64_t bytes) = 0;

  virtual std::unique_ptr<Stream> CreateStream() = 0;
};

// Turns a device address into one that host code may use, inside Stream::RunOnHost only.
class AddressMap {
 public:
  virtual ~AddressMap() = default;
  // CHECKs that the address belongs to the device. nullptr maps to nullptr.
  virtual void* ToHost(void* device_address) const = 0;
};

// A point in a stream's order. Copyable handle; thread-safe.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool done() const = 0;
};

// Work in order. Calls return when the work is queued (on `cpu`: done). Each stream is
// used by one thread at a time. The destructor waits for queued work.
class Stream {
 public:
  virtual ~Stream() = default;

  virtual Device& device() = 0;

  // Host to device. `src` may be reused as soon as the call returns.
  virtual void CopyIn(void* dst_device, const void* src_host, int64_t bytes) = 0;
  // Device to host. `dst` holds the bytes after Synchronize.
  virtual void CopyOut(void* dst_host, const void* src_device, int64_t bytes) = 0;
  // Device to the same device; the ranges do not overlap.
  virtual void CopyWithin(void* dst_device, const void* src_device, int64_t bytes) = 0;
  virtual void FillZero(void* dst_device, int64_t bytes) = 0;

  // Runs a host kernel in this stream's order. `work` translates each device address it
  // uses. CHECK-fails on a device whose kernels do not run on host threads (cuda).
  virtual void RunOnHost(std::function<void(const AddressMap&)> work) = 0;

  virtual std::shared_ptr<Event> Record() = 0;
  // Later work on this stream starts after the event, which may be another stream's.
  virtual void Wait(std::shared_ptr<Event> event) = 0;

  // Waits for everything queued; returns the first device error since the last call.
  virtual absl::Status Synchronize() = 0;
};

}  // namespace plinth

#endif  // PLINTH_HARDWARE_DEVICE_DEVICE_H_
