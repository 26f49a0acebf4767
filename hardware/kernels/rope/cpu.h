// Host variant of rope.h.
#ifndef PLINTH_HARDWARE_KERNELS_ROPE_CPU_H_
#define PLINTH_HARDWARE_KERNELS_ROPE_CPU_H_

#include "plinth/hardware/kernels/rope/rope.h"

namespace plinth::cpu {

// Shapes as checked by Rope.
void Rope(const RopeArgs& args, Threads& threads);

}  // namespace plinth::cpu

#endif  // PLINTH_HARDWARE_KERNELS_ROPE_CPU_H_
