#include "plinth/hardware/kernels/norm/norm.h"

#include "plinth/hardware/device/cuda/cuda_device.h"
#include "plinth/hardware/kernels/norm/cpu.h"
#include "plinth/hardware/kernels/norm/cuda.h"
#include "plinth/hardware/kernels/shape_check.h"

namespace plinth {

void RmsNorm(const RmsNormArgs& args, KernelContext& ctx) {
  Dim T{"T"}, D{"D"};
  ShapeCheck check("RmsNorm");
  check("x_TD", args.x_TD, DType::kF32, {&T, &D})("gain_D", args.gain_D, DType::kF32, {&D})(
      "y_TD", args.y_TD, DType::kF32, {&T, &D});
  if (args.rstd_T.data != nullptr) check.Dense("rstd_T", args.rstd_T, DType::kF32, {&T});
  if (ctx.stream->device().kind() == DeviceKind::kCuda) {
    cuda::RmsNorm({.x = args.x_TD.ptr<float>(),
                   .gain = args.gain_D.ptr<float>(),
                   .y = args.y_TD.ptr<float>(),
                   .rstd = static_cast<float*>(args.rstd_T.data),
                   .rows = T.size,
                   .width = D.size,
                   .x_stride = args.x_TD.strides[0],
                   .y_stride = args.y_TD.strides[0],
                   .eps = args.eps},
                  CudaNativeStream(*ctx.stream));
    return;
  }
  LaunchOnHost(ctx, args, &cpu::RmsNorm);
}

void RmsNormBackward(const RmsNormBackwardArgs& args, KernelContext& ctx) {
  Dim T{"T"}, D{"D"};
  ShapeCheck check("RmsNormBackward");
  check("x_TD", args.x_TD, DType::kF32, {&T, &D})("gain_D", args.gain_D, DType::kF32, {&D})
      .Dense("rstd_T", args.rstd_T, DType::kF32, {&T})("dy_TD", args.dy_TD, DType::kF32, {&T, &D})(
          "dx_TD", args.dx_TD, DType::kF32, {&T, &D})("dgain_D", args.dgain_D, DType::kF32, {&D});
  LaunchOnHost(ctx, args, &cpu::RmsNormBackward);
}

void LayerNorm(const LayerNormArgs& args, KernelContext& ctx) {
  Dim T{"T"}, D{"D"};
  ShapeCheck check("LayerNorm");
  check("x_TD", args.x_TD, DType::kF32, {&T, &D})("gain_D", args.gain_D, DType::kF32, {&D})(
      "bias_D", args.bias_D, DType::kF32, {&D})("y_TD", args.y_TD, DType::kF32, {&T, &D});
  if (args.mean_T.data != nullptr) check.Dense("mean_T", args.mean_T, DType::kF32, {&T});
  if (args.rstd_T.data != nullptr) check.Dense("rstd_T", args.rstd_T, DType::kF32, {&T});
  LaunchOnHost(ctx, args, &cpu::LayerNorm);
}

void LayerNormBackward(const LayerNormBackwardArgs& args, KernelContext& ctx) {
  Dim T{"T"}, D{"D"};
  ShapeCheck check("LayerNormBackward");
  check("x_TD", args.x_TD, DType::kF32, {&T, &D})("gain_D", args.gain_D, DType::kF32, {&D})(
      "mean_T", args.mean_T, DType::kF32, {&T})("rstd_T", args.rstd_T, DType::kF32, {&T})(
      "dy_TD", args.dy_TD, DType::kF32, {&T, &D})("dx_TD", args.dx_TD, DType::kF32, {&T, &D})(
      "dgain_D", args.dgain_D, DType::kF32, {&D})("dbias_D", args.dbias_D, DType::kF32, {&D});
  LaunchOnHost(ctx, args, &cpu::LayerNormBackward);
}

}  // namespace plinth
