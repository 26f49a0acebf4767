// Rope on host memory.
#ifndef PLINTH_HARDWARE_KERNELS_ROPE_CPU_H_
#define PLINTH_HARDWARE_KERNELS_ROPE_CPU_H_

#include "plinth/hardware/kernels/rope/rope.h"

namespace plinth {

// Shapes as checked by Rope.
void RopeCpu(const RopeArgs& args, Threads& threads);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_KERNELS_ROPE_CPU_H_
