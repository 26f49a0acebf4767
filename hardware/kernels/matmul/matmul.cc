#include "plinth/hardware/kernels/matmul/matmul.h"

#include "plinth/hardware/kernels/matmul/cpu.h"
#include "plinth/hardware/kernels/matmul/cuda.h"
#include "plinth/hardware/kernels/shape_check.h"

namespace plinth {

void Matmul(const MatmulArgs& args, KernelContext& ctx) {
  Dim M{"M"}, N{"N"}, K{"K"};
  ShapeCheck check("matmul");
  if (args.transpose_a) {
    check("a", args.a, DType::kF32, {&K, &M});
  } else {
    check("a", args.a, DType::kF32, {&M, &K});
  }
  if (args.transpose_b) {
    check("b", args.b, DType::kF32, {&N, &K});
  } else {
    check("b", args.b, DType::kF32, {&K, &N});
  }
  check("c", args.c_MN, DType::kF32, {&M, &N});
  if (ctx.stream->device().kind() == DeviceKind::kCuda) return cuda::Matmul(args, ctx);
  LaunchOnHost(ctx, args, &cpu::Matmul);
}

}  // namespace plinth
