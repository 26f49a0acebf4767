// Host variants of elementwise.h, vectorised for the machine they run on.
#ifndef PLINTH_HARDWARE_KERNELS_ELEMENTWISE_CPU_H_
#define PLINTH_HARDWARE_KERNELS_ELEMENTWISE_CPU_H_

#include "plinth/hardware/kernels/elementwise/elementwise.h"

namespace plinth::cpu {

void Add(const AddArgs& args, Threads& threads);
void Scale(const ScaleArgs& args, Threads& threads);
void ColumnSum(const ColumnSumArgs& args, Threads& threads);

}  // namespace plinth::cpu

#endif  // PLINTH_HARDWARE_KERNELS_ELEMENTWISE_CPU_H_
