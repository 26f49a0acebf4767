// Rope by its definition, in double: what the fast variants are compared with.
#ifndef PLINTH_HARDWARE_KERNELS_ROPE_REFERENCE_H_
#define PLINTH_HARDWARE_KERNELS_ROPE_REFERENCE_H_

#include "plinth/hardware/kernels/rope/rope.h"

namespace plinth {

// Host memory, shapes as checked by Rope.
void RopeReference(const RopeArgs& args, Threads& threads);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_KERNELS_ROPE_REFERENCE_H_
