#include "plinth/hardware/kernels/norm/reference.h"

#include <cmath>

namespace plinth::reference {
namespace {

// Both norms differ only in what is taken off first.
NormResult Normalise(const std::vector<double>& x, const std::vector<double>& gain,
                     const std::vector<double>& bias, double eps, bool centre) {
  const size_t width = gain.size();
  NormResult result;
  for (size_t begin = 0; begin < x.size(); begin += width) {
    double mean = 0;
    if (centre) {
      for (size_t i = 0; i < width; ++i) mean += x[begin + i];
      mean /= static_cast<double>(width);
    }
    double squares = 0;
    for (size_t i = 0; i < width; ++i) squares += std::pow(x[begin + i] - mean, 2);
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(width) + eps);
    for (size_t i = 0; i < width; ++i) {
      result.y_TD.push_back((x[begin + i] - mean) * rstd * gain[i] + bias[i]);
    }
    result.mean_T.push_back(mean);
    result.rstd_T.push_back(rstd);
  }
  return result;
}

}  // namespace

NormResult RmsNorm(const std::vector<double>& x_TD, const std::vector<double>& gain_D, double eps) {
  return Normalise(x_TD, gain_D, std::vector<double>(gain_D.size(), 0), eps, false);
}

NormResult LayerNorm(const std::vector<double>& x_TD, const std::vector<double>& gain_D,
                     const std::vector<double>& bias_D, double eps) {
  return Normalise(x_TD, gain_D, bias_D, eps, true);
}

}  // namespace plinth::reference
