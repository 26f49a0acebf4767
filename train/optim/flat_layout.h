// FlatLayout: where each parameter lies in the flat buffers of gradients and optimizer state.
#ifndef PLINTH_TRAIN_OPTIM_FLAT_LAYOUT_H_
#define PLINTH_TRAIN_OPTIM_FLAT_LAYOUT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "plinth/hardware/device/tensor.h"
#include "plinth/models/nn/parameter.h"

namespace plinth::train {

// Parameters lie in reverse of the order in which a forward pass uses them, which is the order
// in which backward completes their gradients, and are cut into buckets: the units that ranks
// reduce while backward goes on. Each parameter starts at a multiple of 16 elements (64 bytes);
// the gaps are part of the buckets and stay zero. Immutable; thread-safe.
class FlatLayout {
 public:
  struct Slot {
    models::Parameter* parameter = nullptr;
    int64_t begin = 0;  // element offset in the flat buffer
    int bucket = 0;
  };
  struct Bucket {
    int64_t begin = 0;
    int64_t end = 0;
    int64_t parameters = 0;
  };

  // A bucket is closed once it holds `bucket_bytes` (> 0) of f32, so it may exceed that by one
  // parameter.
  FlatLayout(std::span<models::Parameter* const> parameters, int64_t bucket_bytes);

  int64_t elements() const { return elements_; }
  std::span<const Bucket> buckets() const { return buckets_; }
  // In the order given to the constructor, which does not depend on bucket_bytes.
  std::span<const Slot> slots() const { return slots_; }
  // CHECKs that the parameter belongs to the layout.
  int64_t IndexOf(const models::Parameter& parameter) const;

  // The part of a flat f32 buffer that belongs to a slot, in the parameter's shape.
  TensorView View(const Tensor& flat, const Slot& slot) const;

 private:
  std::vector<Slot> slots_;
  std::vector<Bucket> buckets_;
  absl::flat_hash_map<const models::Parameter*, int64_t> index_;
  int64_t elements_ = 0;
};

}  // namespace plinth::train

#endif  // PLINTH_TRAIN_OPTIM_FLAT_LAYOUT_H_
