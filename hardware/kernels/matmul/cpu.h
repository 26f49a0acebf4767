// Host variant of matmul.h: oneDNN's sgemm.
#ifndef PLINTH_HARDWARE_KERNELS_MATMUL_CPU_H_
#define PLINTH_HARDWARE_KERNELS_MATMUL_CPU_H_

#include "plinth/hardware/kernels/matmul/matmul.h"

namespace plinth::cpu {

// Shapes as checked by Matmul. Uses threads.count() OpenMP threads.
void Matmul(const MatmulArgs& args, Threads& threads);

}  // namespace plinth::cpu

#endif  // PLINTH_HARDWARE_KERNELS_MATMUL_CPU_H_
