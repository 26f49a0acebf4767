#include "plinth/hardware/tensor/tensor_view.h"

namespace plinth {

TensorView TensorView::Contiguous(void* data, DType dtype, const Shape& shape) {
  TensorView view;
  view.data = data;
  view.dtype = dtype;
  view.shape = shape;
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    view.strides[i] = stride;
    stride *= shape.dim(i);
  }
  return view;
}

bool TensorView::contiguous() const {
  int64_t expected = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (shape.dim(i) != 1 && strides[i] != expected) return false;
    expected *= shape.dim(i);
  }
  return true;
}

TensorView TensorView::Rows(int64_t begin, int64_t end) const {
  CHECK_GE(rank(), 1);
  CHECK(0 <= begin && begin <= end && end <= dim(0))
      << "rows " << begin << ".." << end << " of " << shape;
  TensorView view = *this;
  view.data = static_cast<char*>(data) + begin * strides[0] * DTypeSize(dtype);
  std::array<int64_t, Shape::kMaxRank> dims{};
  for (int i = 0; i < rank(); ++i) dims[i] = dim(i);
  dims[0] = end - begin;
  view.shape = Shape(std::span<const int64_t>(dims.data(), static_cast<size_t>(rank())));
  return view;
}

TensorView TensorView::Reshape(const Shape& to) const {
  CHECK(contiguous()) << "reshape of a strided view " << shape;
  CHECK_EQ(to.elements(), elements()) << shape << " to " << to;
  return Contiguous(data, dtype, to);
}

}  // namespace plinth
