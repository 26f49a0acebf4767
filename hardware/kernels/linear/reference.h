// Linear by its definition, sums in double: what the fast variants are compared with.
#ifndef PLINTH_HARDWARE_KERNELS_LINEAR_REFERENCE_H_
#define PLINTH_HARDWARE_KERNELS_LINEAR_REFERENCE_H_

#include "plinth/hardware/kernels/linear/linear.h"

namespace plinth {

// Host memory, shapes as checked by Linear.
void LinearReference(const LinearArgs& args, Threads& threads);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_KERNELS_LINEAR_REFERENCE_H_
