#include "plinth/hardware/kernels/activation/reference.h"

#include <cmath>

namespace plinth::reference {

double Gelu(double x) {
  const double k = std::sqrt(2 / std::acos(-1.0));
  return x / 2 * (1 + std::tanh(k * (x + 0.044715 * x * x * x)));
}

double SwiGlu(double gate, double up) { return gate / (1 + std::exp(-gate)) * up; }

}  // namespace plinth::reference
