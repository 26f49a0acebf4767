// Host variants of norm.h, vectorised for the machine they run on.
#ifndef PLINTH_HARDWARE_KERNELS_NORM_CPU_H_
#define PLINTH_HARDWARE_KERNELS_NORM_CPU_H_

#include "plinth/hardware/kernels/norm/norm.h"

namespace plinth::cpu {

void RmsNorm(const RmsNormArgs& args, Threads& threads);
void RmsNormBackward(const RmsNormBackwardArgs& args, Threads& threads);
void LayerNorm(const LayerNormArgs& args, Threads& threads);
void LayerNormBackward(const LayerNormBackwardArgs& args, Threads& threads);

}  // namespace plinth::cpu

#endif  // PLINTH_HARDWARE_KERNELS_NORM_CPU_H_
