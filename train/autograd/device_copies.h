// DeviceCopies: small host arrays (ids, positions, angles) on the device, each sent once.
#ifndef PLINTH_TRAIN_AUTOGRAD_DEVICE_COPIES_H_
#define PLINTH_TRAIN_AUTOGRAD_DEVICE_COPIES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plinth/hardware/device/tensor.h"
#include "plinth/hardware/kernels/kernel.h"

namespace plinth::train {

// Every layer of a model asks for the same positions. Arrays are found again by content, so a
// caller may reuse its buffers. Thread-compatible.
class DeviceCopies {
 public:
  // Both outlive the object.
  DeviceCopies(KernelContext* ctx, CachingAllocator* allocator)
      : ctx_(ctx), allocator_(allocator) {}

  Tensor Of(std::span<const int32_t> values);
  Tensor Of(std::span<const float> values);
  void Clear() { entries_.clear(); }

 private:
  struct Entry {
    std::string bytes;
    Tensor copy;
  };
  Tensor Find(const void* data, int64_t elements, DType dtype);

  KernelContext* const ctx_;
  CachingAllocator* const allocator_;
  std::vector<Entry> entries_;
};

}  // namespace plinth::train

#endif  // PLINTH_TRAIN_AUTOGRAD_DEVICE_COPIES_H_
