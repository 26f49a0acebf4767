// Host variants of linear.h, vectorised for the machine they run on.
#ifndef PLINTH_HARDWARE_KERNELS_LINEAR_CPU_H_
#define PLINTH_HARDWARE_KERNELS_LINEAR_CPU_H_

#include "plinth/hardware/kernels/linear/linear.h"

namespace plinth::cpu {

// Shapes as checked by the entry points.
void Linear(const LinearArgs& args, Threads& threads);
void PackLinear(const PackLinearArgs& args, Threads& threads);

}  // namespace plinth::cpu

#endif  // PLINTH_HARDWARE_KERNELS_LINEAR_CPU_H_
