#include "plinth/hardware/kernels/activation/activation.h"

#include "plinth/hardware/kernels/activation/cpu.h"
#include "plinth/hardware/kernels/shape_check.h"

namespace plinth {

void Gelu(const GeluArgs& args, KernelContext& ctx) {
  Dim N{"N"};
  ShapeCheck check("Gelu");
  check.Flat("x", args.x, DType::kF32, &N).Flat("y", args.y, DType::kF32, &N);
  LaunchOnHost(ctx, args, &cpu::Gelu);
}

void GeluBackward(const GeluBackwardArgs& args, KernelContext& ctx) {
  Dim N{"N"};
  ShapeCheck check("GeluBackward");
  check.Flat("x", args.x, DType::kF32, &N)
      .Flat("dy", args.dy, DType::kF32, &N)
      .Flat("dx", args.dx, DType::kF32, &N);
  LaunchOnHost(ctx, args, &cpu::GeluBackward);
}

void SwiGlu(const SwiGluArgs& args, KernelContext& ctx) {
  Dim N{"N"};
  ShapeCheck check("SwiGlu");
  check.Flat("gate", args.gate, DType::kF32, &N)
      .Flat("up", args.up, DType::kF32, &N)
      .Flat("y", args.y, DType::kF32, &N);
  LaunchOnHost(ctx, args, &cpu::SwiGlu);
}

void SwiGluBackward(const SwiGluBackwardArgs& args, KernelContext& ctx) {
  Dim N{"N"};
  ShapeCheck check("SwiGluBackward");
  check.Flat("gate", args.gate, DType::kF32, &N)
      .Flat("up", args.up, DType::kF32, &N)
      .Flat("dy", args.dy, DType::kF32, &N)
      .Flat("dgate", args.dgate, DType::kF32, &N)
      .Flat("dup", args.dup, DType::kF32, &N);
  LaunchOnHost(ctx, args, &cpu::SwiGluBackward);
}

}  // namespace plinth
