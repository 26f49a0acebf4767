#include "plinth/hardware/kernels/optimizer/optimizer.h"

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/kernels/optimizer/cpu.h"
#include "plinth/hardware/kernels/shape_check.h"

namespace plinth {

void AdamW(const AdamWArgs& args, KernelContext& ctx) {
  Dim N{"N"};
  ShapeCheck check("AdamW");
  check.Flat("w", args.w, DType::kF32, &N)
      .Flat("g", args.g, DType::kF32, &N)
      .Flat("m", args.m, DType::kF32, &N)
      .Flat("v", args.v, DType::kF32, &N);
  CHECK_GE(args.step, 1);
  LaunchOnHost(ctx, args, &cpu::AdamW);
}

void SquareSum(const SquareSumArgs& args, KernelContext& ctx) {
  Dim N{"N"};
  ShapeCheck check("SquareSum");
  check.Flat("x", args.x, DType::kF32, &N);
  Dim one{"1", 1};
  check.Flat("out", args.out, DType::kF64, &one);
  LaunchOnHost(ctx, args, &cpu::SquareSum);
}

}  // namespace plinth
