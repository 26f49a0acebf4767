// Normalisation over the last dimension, f32, sums in f32 in a fixed order per row.
//   RmsNorm    y = x / sqrt(mean(x^2) + eps) * gain                (Zhang & Sennrich, 2019)
//   LayerNorm  y = (x - mean) / sqrt(var + eps) * gain + bias      (Ba et al., 2016)
// A row's result depends on that row alone. Forward keeps the per-row statistics that
// backward needs when given a place. Backward overwrites dx, which may be x or dy, and adds
// to dgain and dbias, row after row.
// Shapes   rows may be strided.    Threads  do not change results.    Cost  no allocation.
#ifndef PLINTH_HARDWARE_KERNELS_NORM_NORM_H_
#define PLINTH_HARDWARE_KERNELS_NORM_NORM_H_

#include "plinth/hardware/kernels/kernel.h"

namespace plinth {

struct RmsNormArgs {
  TensorView x_TD;
  TensorView gain_D;
  TensorView y_TD;
  TensorView rstd_T;  // optional out: 1 / sqrt(mean(x^2) + eps)
  float eps = 0;

  template <typename F>
  void ForEachView(F&& visit) {
    visit(x_TD);
    visit(gain_D);
    visit(y_TD);
    visit(rstd_T);
  }
};

void RmsNorm(const RmsNormArgs& args, KernelContext& ctx);

struct RmsNormBackwardArgs {
  TensorView x_TD;
  TensorView gain_D;
  TensorView rstd_T;
  TensorView dy_TD;
  TensorView dx_TD;    // overwritten
  TensorView dgain_D;  // added to

  template <typename F>
  void ForEachView(F&& visit) {
    visit(x_TD);
    visit(gain_D);
    visit(rstd_T);
    visit(dy_TD);
    visit(dx_TD);
    visit(dgain_D);
  }
};

void RmsNormBackward(const RmsNormBackwardArgs& args, KernelContext& ctx);

struct LayerNormArgs {
  TensorView x_TD;
  TensorView gain_D;
  TensorView bias_D;
  TensorView y_TD;
  TensorView mean_T;  // optional out
  TensorView rstd_T;  // optional out
  float eps = 0;

  template <typename F>
  void ForEachView(F&& visit) {
    visit(x_TD);
    visit(gain_D);
    visit(bias_D);
    visit(y_TD);
    visit(mean_T);
    visit(rstd_T);
  }
};

void LayerNorm(const LayerNormArgs& args, KernelContext& ctx);

struct LayerNormBackwardArgs {
  TensorView x_TD;
  TensorView gain_D;
  TensorView mean_T;
  TensorView rstd_T;
  TensorView dy_TD;
  TensorView dx_TD;    // overwritten
  TensorView dgain_D;  // added to
  TensorView dbias_D;  // added to

  template <typename F>
  void ForEachView(F&& visit) {
    visit(x_TD);
    visit(gain_D);
    visit(mean_T);
    visit(rstd_T);
    visit(dy_TD);
    visit(dx_TD);
    visit(dgain_D);
    visit(dbias_D);
  }
};

void LayerNormBackward(const LayerNormBackwardArgs& args, KernelContext& ctx);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_KERNELS_NORM_NORM_H_
