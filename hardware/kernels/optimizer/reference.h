// optimizer.h in double.
#ifndef PLINTH_HARDWARE_KERNELS_OPTIMIZER_REFERENCE_H_
#define PLINTH_HARDWARE_KERNELS_OPTIMIZER_REFERENCE_H_

#include <cstdint>

namespace plinth::reference {

struct AdamWState {
  double w = 0;
  double m = 0;
  double v = 0;
};
struct AdamWOptions {
  double lr = 0;
  double beta1 = 0;
  double beta2 = 0;
  double eps = 0;
  double decay = 0;
};

// One step for one weight; `step` counts from 1.
void AdamW(AdamWState& state, double gradient, const AdamWOptions& options, int64_t step);

}  // namespace plinth::reference

#endif  // PLINTH_HARDWARE_KERNELS_OPTIMIZER_REFERENCE_H_
