// Host variants of optimizer.h, vectorised for the machine they run on.
#ifndef PLINTH_HARDWARE_KERNELS_OPTIMIZER_CPU_H_
#define PLINTH_HARDWARE_KERNELS_OPTIMIZER_CPU_H_

#include "plinth/hardware/kernels/optimizer/optimizer.h"

namespace plinth::cpu {

void AdamW(const AdamWArgs& args, Threads& threads);
void SquareSum(const SquareSumArgs& args, Threads& threads);

}  // namespace plinth::cpu

#endif  // PLINTH_HARDWARE_KERNELS_OPTIMIZER_CPU_H_
