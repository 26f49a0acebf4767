// norm.h in double, one row after the other: what the fast variants are tested against.
#ifndef PLINTH_HARDWARE_KERNELS_NORM_REFERENCE_H_
#define PLINTH_HARDWARE_KERNELS_NORM_REFERENCE_H_

#include <vector>

namespace plinth::reference {

struct NormResult {
  std::vector<double> y_TD;
  std::vector<double> mean_T;  // 0 for RmsNorm
  std::vector<double> rstd_T;
};

// The width of a row is gain_D.size().
NormResult RmsNorm(const std::vector<double>& x_TD, const std::vector<double>& gain_D, double eps);
NormResult LayerNorm(const std::vector<double>& x_TD, const std::vector<double>& gain_D,
                     const std::vector<double>& bias_D, double eps);

}  // namespace plinth::reference

#endif  // PLINTH_HARDWARE_KERNELS_NORM_REFERENCE_H_
