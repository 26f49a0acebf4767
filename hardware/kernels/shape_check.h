// ShapeCheck: a kernel entry's contract on the views it is given, with messages that name
// the kernel, the operand, the dimension and both sizes.
//
//   Dim T{"T"}, I{"I"}, O{"O"};  // bound by first use
//   ShapeCheck("linear")("x", x, DType::kF32, {&T, &I})("w", w, DType::kF32, {&O, &I});
//
// Fails as CHECK does: a wrong shape is a bug in the caller, not input from outside.
#ifndef PLINTH_HARDWARE_KERNELS_SHAPE_CHECK_H_
#define PLINTH_HARDWARE_KERNELS_SHAPE_CHECK_H_

#include <initializer_list>

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/tensor/tensor_view.h"

namespace plinth {

struct Dim {
  const char* name;
  int64_t size = -1;  // -1: not yet bound
};

class ShapeCheck {
 public:
  explicit ShapeCheck(const char* kernel) : kernel_(kernel) {}

  // Rank, dtype and sizes agree, the view has data unless it is empty, and only its
  // outermost dimension is strided.
  ShapeCheck& operator()(const char* operand, const TensorView& view, DType dtype,
                         std::initializer_list<Dim*> dims) {
    CHECK_EQ(view.dtype, dtype) << " in " << kernel_ << ": " << operand;
    CHECK_EQ(view.rank(), static_cast<int>(dims.size()))
        << " in " << kernel_ << ": " << operand << " has shape " << view.shape;
    int i = 0;
    for (Dim* dim : dims) {
      if (dim->size < 0) dim->size = view.dim(i);
      CHECK_EQ(view.dim(i), dim->size) << " in " << kernel_ << ": dim " << dim->name << " of "
                                       << operand << ", which has shape " << view.shape;
      ++i;
    }
    CHECK(view.data != nullptr || view.elements() == 0) << " in " << kernel_ << ": " << operand;
    int64_t dense = 1;
    for (i = view.rank() - 1; i > 0 || (i == 0 && view.rank() == 1); --i) {
      CHECK(view.strides[i] == dense || view.dim(i) <= 1)
          << " in " << kernel_ << ": " << operand << " is strided inside its rows";
      dense *= view.dim(i);
    }
    return *this;
  }

  // As above, and with no gap between rows either.
  ShapeCheck& Dense(const char* operand, const TensorView& view, DType dtype,
                    std::initializer_list<Dim*> dims) {
    (*this)(operand, view, dtype, dims);
    CHECK(view.contiguous()) << " in " << kernel_ << ": " << operand << " has gaps between rows";
    return *this;
  }

  // For pointwise kernels: any rank without gaps, `n` elements in all.
  ShapeCheck& Flat(const char* operand, const TensorView& view, DType dtype, Dim* n) {
    CHECK(view.contiguous()) << " in " << kernel_ << ": " << operand << " has gaps";
    return (*this)(operand, view.Reshape({view.elements()}), dtype, {n});
  }

 private:
  const char* kernel_;
};

}  // namespace plinth

#endif  // PLINTH_HARDWARE_KERNELS_SHAPE_CHECK_H_
