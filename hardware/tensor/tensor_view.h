// TensorView: where the elements of a tensor lie; owns nothing.
#ifndef PLINTH_HARDWARE_TENSOR_TENSOR_VIEW_H_
#define PLINTH_HARDWARE_TENSOR_TENSOR_VIEW_H_

#include <array>
#include <cstdint>

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/tensor/dtype.h"
#include "plinth/hardware/tensor/shape.h"

namespace plinth {

// A pointer, a dtype, a shape and a stride per dimension (in elements). The memory must
// outlive the view's last use, on a device: the last work queued on a stream that uses it.
// `data` may be a device address: host code must not read it unless the device says so
// (Device::host_accessible). Thread-compatible value type.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;
  std::array<int64_t, Shape::kMaxRank> strides{};

  // A densely packed, row-major view.
  static TensorView Contiguous(void* data, DType dtype, const Shape& shape);

  int rank() const { return shape.rank(); }
  int64_t dim(int i) const { return shape.dim(i); }
  int64_t elements() const { return shape.elements(); }
  int64_t bytes() const { return elements() * DTypeSize(dtype); }
  bool contiguous() const;

  // Rows [begin, end) of the outermost dimension.
  TensorView Rows(int64_t begin, int64_t end) const;
  // The same elements under another shape. CHECKs contiguity and the element count.
  TensorView Reshape(const Shape& to) const;

  // Typed pointer to the first element. T is the dtype's C++ type; debug builds check its size.
  template <typename T>
  T* ptr() const {
    DCHECK_EQ(static_cast<int64_t>(sizeof(T)), DTypeSize(dtype));
    return static_cast<T*>(data);
  }
};

}  // namespace plinth

#endif  // PLINTH_HARDWARE_TENSOR_TENSOR_VIEW_H_
