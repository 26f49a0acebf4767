#include "plinth/hardware/kernels/optimizer/reference.h"

#include <cmath>

namespace plinth::reference {

void AdamW(AdamWState& state, double gradient, const AdamWOptions& options, int64_t step) {
  const double t = static_cast<double>(step);
  state.m = options.beta1 * state.m + (1 - options.beta1) * gradient;
  state.v = options.beta2 * state.v + (1 - options.beta2) * gradient * gradient;
  const double mean = state.m / (1 - std::pow(options.beta1, t));
  const double square = state.v / (1 - std::pow(options.beta2, t));
  state.w -= options.lr * (mean / (std::sqrt(square) + options.eps) + options.decay * state.w);
}

}  // namespace plinth::reference
