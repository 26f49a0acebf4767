// Moves whole rows by index. f32 source; the destination of ScatterRows may be bf16.
//   GatherRows   y[r] = x[index[r]]
//   ScatterRows  y[index[r]] = x[r]       indices distinct (writes a KV cache)
//   AddRows      y[index[r]] += x[r]      indices distinct (gradient of GatherRows)
// Matrices are [rows, D] and may be strided by row. Rounding to bf16 is to nearest even. Host
// kernels CHECK that indices are in range; that they are distinct is the caller's promise.
#ifndef PLINTH_HARDWARE_KERNELS_ROWS_ROWS_H_
#define PLINTH_HARDWARE_KERNELS_ROWS_ROWS_H_

#include "plinth/hardware/kernels/kernel.h"

namespace plinth {

struct GatherRowsArgs {
  TensorView x;
  TensorView index;  // i32 [R]
  TensorView y;

  template <typename F>
  void ForEachView(F&& visit) {
    visit(x);
    visit(index);
    visit(y);
  }
};

void GatherRows(const GatherRowsArgs& args, KernelContext& ctx);

struct ScatterRowsArgs {
  TensorView x;
  TensorView index;  // i32 [R]
  TensorView y;

  template <typename F>
  void ForEachView(F&& visit) {
    visit(x);
    visit(index);
    visit(y);
  }
};

void ScatterRows(const ScatterRowsArgs& args, KernelContext& ctx);

struct AddRowsArgs {
  TensorView x;
  TensorView index;  // i32 [R]
  TensorView y;

  template <typename F>
  void ForEachView(F&& visit) {
    visit(x);
    visit(index);
    visit(y);
  }
};

void AddRows(const AddRowsArgs& args, KernelContext& ctx);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_KERNELS_ROWS_ROWS_H_
