// Matmul by its definition, sums in double: what the fast variants are compared with.
#ifndef PLINTH_HARDWARE_KERNELS_MATMUL_REFERENCE_H_
#define PLINTH_HARDWARE_KERNELS_MATMUL_REFERENCE_H_

#include "plinth/hardware/kernels/matmul/matmul.h"

namespace plinth::reference {

// Host memory, shapes as checked by Matmul.
void Matmul(const MatmulArgs& args);

}  // namespace plinth::reference

#endif  // PLINTH_HARDWARE_KERNELS_MATMUL_REFERENCE_H_
