// The memory of the simulated device: blocks in a reserved range of addresses, and the host
// memory behind them.
#ifndef PLINTH_HARDWARE_DEVICE_SIM_SIM_MEMORY_H_
#define PLINTH_HARDWARE_DEVICE_SIM_SIM_MEMORY_H_

#include <cstdint>
#include <map>
#include <mutex>

#include "absl/status/statusor.h"
#include "plinth/hardware/device/device.h"

namespace plinth {

// Thread-safe. The destructor CHECKs that no block is live.
class SimMemory : public AddressMap {
 public:
  // CHECKs that the host can reserve twice the addresses (no memory is taken yet).
  explicit SimMemory(int64_t bytes);
  ~SimMemory() override;
  SimMemory(const SimMemory&) = delete;
  SimMemory& operator=(const SimMemory&) = delete;

  // As Device::Allocate and Free.
  absl::StatusOr<void*> Allocate(int64_t bytes);
  void Free(void* device_address, int64_t bytes);

  void* ToHost(void* device_address) const override { return ToHost(device_address, 0); }
  // CHECKs that all `bytes` from the address lie in one live block. The end of a block is a
  // valid address of no bytes: the view of a tensor's rows [n, n) has it.
  void* ToHost(const void* device_address, int64_t bytes) const;

 private:
  // Takes `size` addresses from the first gap that holds them; -1 when none does.
  int64_t TakeGapLocked(int64_t size);
  void ReturnGapLocked(int64_t offset, int64_t size);

  const int64_t capacity_;  // a multiple of the page size
  char* const device_;      // reserved, never accessible
  char* const host_;        // accessible where blocks are live
  mutable std::mutex mutex_;
  // Guarded by mutex_; offset to bytes. Adjacent gaps are merged.
  std::map<int64_t, int64_t> live_;
  std::map<int64_t, int64_t> gaps_;
};

}  // namespace plinth

#endif  // PLINTH_HARDWARE_DEVICE_SIM_SIM_MEMORY_H_
