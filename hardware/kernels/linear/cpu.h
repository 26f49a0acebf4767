// Linear on host memory.
#ifndef PLINTH_HARDWARE_KERNELS_LINEAR_CPU_H_
#define PLINTH_HARDWARE_KERNELS_LINEAR_CPU_H_

#include "plinth/hardware/kernels/linear/linear.h"

namespace plinth {

// Shapes as checked by the entry points.
void LinearCpu(const LinearArgs& args, Threads& threads);
void PackLinearCpu(const PackLinearArgs& args, Threads& threads);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_KERNELS_LINEAR_CPU_H_
