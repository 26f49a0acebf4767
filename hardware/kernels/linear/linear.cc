#include "plinth/hardware/kernels/linear/linear.h"

#include "plinth/hardware/kernels/linear/cpu.h"
#include "plinth/hardware/kernels/shape_check.h"

namespace plinth {
namespace {

int64_t PanelsFor(int64_t outputs) { return (outputs + kLinearPanel - 1) / kLinearPanel; }

// The dtypes a weight may have.
DType WeightDType(const TensorView& w) {
  return w.dtype == DType::kBf16 ? DType::kBf16 : DType::kF32;
}

}  // namespace

void Linear(const LinearArgs& args, KernelContext& ctx) {
  Dim T{"T"}, I{"I"}, O{"O"}, panel{"16", kLinearPanel};
  ShapeCheck check("linear");
  check("x", args.x_TI, DType::kF32, {&T, &I})("y", args.y_TO, DType::kF32, {&T, &O});
  if (args.bias_O.data != nullptr) check("bias", args.bias_O, DType::kF32, {&O});
  Dim panels{"ceil(O/16)", PanelsFor(O.size)};
  if (args.packed) {
    check.Dense("w", args.w, WeightDType(args.w), {&panels, &I, &panel});
  } else {
    check("w", args.w, WeightDType(args.w), {&O, &I});
  }
  LaunchOnHost(ctx, args, &cpu::Linear);
}

void PackLinear(const PackLinearArgs& args, KernelContext& ctx) {
  Dim I{"I"}, O{"O"}, panel{"16", kLinearPanel};
  ShapeCheck check("pack_linear");
  check("w", args.w_OI, DType::kF32, {&O, &I});
  Dim panels{"ceil(O/16)", PanelsFor(O.size)};
  check.Dense("packed", args.packed, WeightDType(args.packed), {&panels, &I, &panel});
  LaunchOnHost(ctx, args, &cpu::PackLinear);
}

}  // namespace plinth
