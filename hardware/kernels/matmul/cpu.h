// Matmul on host memory, by oneDNN's sgemm.
#ifndef PLINTH_HARDWARE_KERNELS_MATMUL_CPU_H_
#define PLINTH_HARDWARE_KERNELS_MATMUL_CPU_H_

#include "plinth/hardware/kernels/matmul/matmul.h"

namespace plinth {

// Shapes as checked by Matmul. Uses threads.count() OpenMP threads.
void MatmulCpu(const MatmulArgs& args, Threads& threads);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_KERNELS_MATMUL_CPU_H_
