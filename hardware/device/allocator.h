// CachingAllocator: device blocks that are reused instead of returned.
#ifndef PLINTH_HARDWARE_DEVICE_ALLOCATOR_H_
#define PLINTH_HARDWARE_DEVICE_ALLOCATOR_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "plinth/hardware/device/device.h"

namespace plinth {

// Bytes are counted after rounding to block sizes, as the device sees them.
struct AllocatorStats {
  int64_t live_bytes = 0;      // in use now
  int64_t peak_bytes = 0;      // most ever in use at once
  int64_t reserved_bytes = 0;  // taken from the device, in use or cached
};

// A freed block may be handed out while work queued on it still runs: users of one
// allocator queue all their work on one stream, whose order makes that safe.
// Thread-safe. Must outlive every block (and every Tensor) it gave out.
class CachingAllocator {
 public:
  // `limit_bytes` bounds reserved_bytes; 0 means no limit but the device's own.
  explicit CachingAllocator(Device* device, int64_t limit_bytes = 0);
  // CHECKs that every block came back.
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // A block of at least `bytes` bytes with undefined contents. When the device is out of
  // memory, cached blocks are returned to it first. kResourceExhausted names the device,
  // the bytes wanted, live and reserved.
  absl::StatusOr<void*> Allocate(int64_t bytes);
  // `bytes` as passed to Allocate.
  void Free(void* data, int64_t bytes);

  Device& device() { return *device_; }
  AllocatorStats stats() const;
  // Starts a new peak measurement at the present live bytes.
  void ResetPeak();

  // The size that a request of `bytes` occupies: the planner counts with the same rule.
  static int64_t BlockBytes(int64_t bytes);

 private:
  void ReleaseCachedLocked();

  Device* const device_;
  const int64_t limit_bytes_;
  mutable std::mutex mutex_;
  std::map<int64_t, std::vector<void*>> cached_;  // guarded by mutex_; block size to blocks
  AllocatorStats stats_;                          // guarded by mutex_
};

}  // namespace plinth

#endif  // PLINTH_HARDWARE_DEVICE_ALLOCATOR_H_
