// Host variants of cross_entropy.h, vectorised for the machine they run on.
#ifndef PLINTH_HARDWARE_KERNELS_CROSS_ENTROPY_CPU_H_
#define PLINTH_HARDWARE_KERNELS_CROSS_ENTROPY_CPU_H_

#include "plinth/hardware/kernels/cross_entropy/cross_entropy.h"

namespace plinth::cpu {

void CrossEntropy(const CrossEntropyArgs& args, Threads& threads);

}  // namespace plinth::cpu

#endif  // PLINTH_HARDWARE_KERNELS_CROSS_ENTROPY_CPU_H_
