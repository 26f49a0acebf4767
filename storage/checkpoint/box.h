// Boxes of a tensor's index space: how slices of one layout are read into another.
#ifndef PLINTH_STORAGE_CHECKPOINT_BOX_H_
#define PLINTH_STORAGE_CHECKPOINT_BOX_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace plinth::storage {

// Elements with offset[d] <= i[d] < offset[d] + shape[d]; equal ranks, none negative. A
// scalar's box has rank 0 and one element. The bytes of a box are dense and row-major.
struct Box {
  std::vector<int64_t> offset;
  std::vector<int64_t> shape;

  // The whole of a tensor.
  static Box Whole(std::span<const int64_t> shape);
  // "[0+4, 8+16]": offset and size of each dimension.
  std::string ToString() const;

  friend bool operator==(const Box&, const Box&) = default;
};

// kInvalidArgument unless ranks are equal, nothing is negative and the box lies in a tensor
// of this shape. Elements are counted without overflow once this holds for a shape whose
// own element count fits.
absl::Status CheckWithin(const Box& box, std::span<const int64_t> tensor_shape);

// CHECKs that it fits in 63 bits.
int64_t Elements(std::span<const int64_t> shape);

// kInvalidArgument unless the boxes, each within the tensor, cover it exactly once: names
// the two that overlap, or how many elements are missing. Empty boxes are ignored.
// Cost: quadratic in the number of boxes of this one tensor.
absl::Status CheckTiling(std::span<const Box> boxes, std::span<const int64_t> tensor_shape);

// Copies what the two boxes of one tensor share from `from_bytes` to `to_bytes`, and
// returns how many elements that is. Each span holds its whole box.
int64_t CopyShared(const Box& from, std::span<const std::byte> from_bytes, const Box& to,
                   std::span<std::byte> to_bytes, int64_t element_bytes);

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_CHECKPOINT_BOX_H_
