// Tensor: a view plus shared ownership of the block it lies in.
#ifndef PLINTH_HARDWARE_DEVICE_TENSOR_H_
#define PLINTH_HARDWARE_DEVICE_TENSOR_H_

#include <cstdint>
#include <memory>

#include "plinth/hardware/device/allocator.h"
#include "plinth/hardware/tensor/tensor_view.h"

namespace plinth {

// A cheap handle; copies share elements and id. The block returns to its allocator when
// the last handle goes. An empty Tensor (default) has no elements. Handles may be passed
// between threads; one handle is used by one thread at a time.
class Tensor {
 public:
  Tensor() = default;

  // Uninitialised, contiguous. Running out of device memory ends the program with the
  // allocator's message: sizes are planned before a run (tools/plan), not during it.
  static Tensor New(CachingAllocator& allocator, DType dtype, const Shape& shape);

  bool empty() const { return block_ == nullptr; }
  const TensorView& view() const { return view_; }
  const Shape& shape() const { return view_.shape; }
  DType dtype() const { return view_.dtype; }
  int64_t dim(int i) const { return view_.dim(i); }
  int64_t elements() const { return view_.elements(); }

  // Names this value within the process: copies of a handle share it, every New, Rows and
  // Reshape makes another. Used to attach gradients to values.
  uint64_t id() const { return id_; }

  // Views of the same elements that keep the block alive.
  Tensor Rows(int64_t begin, int64_t end) const;
  Tensor Reshape(const Shape& shape) const;

 private:
  struct Block;
  Tensor(std::shared_ptr<const Block> block, const TensorView& view);

  std::shared_ptr<const Block> block_;
  TensorView view_;
  uint64_t id_ = 0;
};

}  // namespace plinth

#endif  // PLINTH_HARDWARE_DEVICE_TENSOR_H_
