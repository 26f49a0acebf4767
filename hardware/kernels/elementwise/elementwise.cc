#include "plinth/hardware/kernels/elementwise/elementwise.h"

#include "plinth/hardware/kernels/elementwise/cpu.h"
#include "plinth/hardware/kernels/shape_check.h"

namespace plinth {

void Add(const AddArgs& args, KernelContext& ctx) {
  Dim N{"N"};
  ShapeCheck check("Add");
  check.Flat("a", args.a, DType::kF32, &N)
      .Flat("b", args.b, DType::kF32, &N)
      .Flat("y", args.y, DType::kF32, &N);
  LaunchOnHost(ctx, args, &cpu::Add);
}

void Scale(const ScaleArgs& args, KernelContext& ctx) {
  Dim N{"N"};
  ShapeCheck check("Scale");
  check.Flat("x", args.x, DType::kF32, &N);
  LaunchOnHost(ctx, args, &cpu::Scale);
}

void ColumnSum(const ColumnSumArgs& args, KernelContext& ctx) {
  Dim T{"T"}, O{"O"};
  ShapeCheck check("ColumnSum");
  check("x_TO", args.x_TO, DType::kF32, {&T, &O}).Dense("y_O", args.y_O, DType::kF32, {&O});
  LaunchOnHost(ctx, args, &cpu::ColumnSum);
}

}  // namespace plinth
