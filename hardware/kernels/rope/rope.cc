#include "plinth/hardware/kernels/rope/rope.h"

#include "plinth/hardware/kernels/rope/cpu.h"
#include "plinth/hardware/kernels/shape_check.h"

namespace plinth {

void Rope(const RopeArgs& args, KernelContext& ctx) {
  CHECK_EQ(args.head_dim % 2, 0) << " in rope: head_dim " << args.head_dim;
  Dim T{"T"}, width{"H*D", args.heads * args.head_dim}, half{"D/2", args.head_dim / 2};
  ShapeCheck("rope")("x", args.x, DType::kF32, {&T, &width})(
      "y", args.y, DType::kF32, {&T, &width})("positions", args.positions, DType::kI32, {&T})(
      "inv_freq", args.inv_freq, DType::kF32, {&half});
  LaunchOnHost(ctx, args, &cpu::Rope);
}

}  // namespace plinth
