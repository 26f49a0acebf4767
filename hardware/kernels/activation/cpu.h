// Host variants of activation.h, vectorised for the machine they run on.
#ifndef PLINTH_HARDWARE_KERNELS_ACTIVATION_CPU_H_
#define PLINTH_HARDWARE_KERNELS_ACTIVATION_CPU_H_

#include "plinth/hardware/kernels/activation/activation.h"

namespace plinth::cpu {

void Gelu(const GeluArgs& args, Threads& threads);
void GeluBackward(const GeluBackwardArgs& args, Threads& threads);
void SwiGlu(const SwiGluArgs& args, Threads& threads);
void SwiGluBackward(const SwiGluBackwardArgs& args, Threads& threads);

}  // namespace plinth::cpu

#endif  // PLINTH_HARDWARE_KERNELS_ACTIVATION_CPU_H_
