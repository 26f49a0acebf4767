// Linear by its definition, sums in double: what the fast variants are compared with.
#ifndef PLINTH_HARDWARE_KERNELS_LINEAR_REFERENCE_H_
#define PLINTH_HARDWARE_KERNELS_LINEAR_REFERENCE_H_

#include "plinth/hardware/kernels/linear/linear.h"

namespace plinth::reference {

// Host memory, shapes as checked by Linear.
void Linear(const LinearArgs& args);

}  // namespace plinth::reference

#endif  // PLINTH_HARDWARE_KERNELS_LINEAR_REFERENCE_H_
