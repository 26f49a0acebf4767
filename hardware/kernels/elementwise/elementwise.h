// Small pointwise and column kernels, f32.
//   Add          y = a + b            (y may be a or b)
//   Scale        x *= factor
//   ColumnSum    y_O += sum_t x_TO    (gradient of a bias; row after row; rows may be strided)
// Add and Scale take contiguous views of any rank with equal element counts.
#ifndef PLINTH_HARDWARE_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
#define PLINTH_HARDWARE_KERNELS_ELEMENTWISE_ELEMENTWISE_H_

#include "plinth/hardware/kernels/kernel.h"

namespace plinth {

struct AddArgs {
  TensorView a;
  TensorView b;
  TensorView y;

  template <typename F>
  void ForEachView(F&& visit) {
    visit(a);
    visit(b);
    visit(y);
  }
};

void Add(const AddArgs& args, KernelContext& ctx);

struct ScaleArgs {
  TensorView x;  // in place
  float factor = 1;

  template <typename F>
  void ForEachView(F&& visit) {
    visit(x);
  }
};

void Scale(const ScaleArgs& args, KernelContext& ctx);

struct ColumnSumArgs {
  TensorView x_TO;
  TensorView y_O;  // added to

  template <typename F>
  void ForEachView(F&& visit) {
    visit(x_TO);
    visit(y_O);
  }
};

void ColumnSum(const ColumnSumArgs& args, KernelContext& ctx);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
