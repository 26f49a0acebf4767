#include "plinth/hardware/kernels/rows/rows.h"

#include "plinth/hardware/kernels/rows/cpu.h"
#include "plinth/hardware/kernels/shape_check.h"

namespace plinth {

void GatherRows(const GatherRowsArgs& args, KernelContext& ctx) {
  Dim N{"N"}, R{"R"}, D{"D"};
  ShapeCheck check("GatherRows");
  check("x", args.x, DType::kF32, {&N, &D})("index", args.index, DType::kI32, {&R})(
      "y", args.y, DType::kF32, {&R, &D});
  LaunchOnHost(ctx, args, &cpu::GatherRows);
}

void ScatterRows(const ScatterRowsArgs& args, KernelContext& ctx) {
  Dim N{"N"}, R{"R"}, D{"D"};
  ShapeCheck check("ScatterRows");
  check("x", args.x, DType::kF32, {&R, &D})("index", args.index, DType::kI32, {&R});
  const DType stored = args.y.dtype == DType::kBf16 ? DType::kBf16 : DType::kF32;
  check("y", args.y, stored, {&N, &D});
  LaunchOnHost(ctx, args, &cpu::ScatterRows);
}

void AddRows(const AddRowsArgs& args, KernelContext& ctx) {
  Dim N{"N"}, R{"R"}, D{"D"};
  ShapeCheck check("AddRows");
  check("x", args.x, DType::kF32, {&R, &D})("index", args.index, DType::kI32, {&R})(
      "y", args.y, DType::kF32, {&N, &D});
  LaunchOnHost(ctx, args, &cpu::AddRows);
}

}  // namespace plinth
