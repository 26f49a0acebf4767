// Rope by its definition, in double: what the fast variants are compared with.
#ifndef PLINTH_HARDWARE_KERNELS_ROPE_REFERENCE_H_
#define PLINTH_HARDWARE_KERNELS_ROPE_REFERENCE_H_

#include "plinth/hardware/kernels/rope/rope.h"

namespace plinth::reference {

// Host memory, shapes as checked by Rope.
void Rope(const RopeArgs& args);

}  // namespace plinth::reference

#endif  // PLINTH_HARDWARE_KERNELS_ROPE_REFERENCE_H_
