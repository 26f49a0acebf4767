// Host variants of rows.h, vectorised for the machine they run on.
#ifndef PLINTH_HARDWARE_KERNELS_ROWS_CPU_H_
#define PLINTH_HARDWARE_KERNELS_ROWS_CPU_H_

#include "plinth/hardware/kernels/rows/rows.h"

namespace plinth::cpu {

void GatherRows(const GatherRowsArgs& args, Threads& threads);
void ScatterRows(const ScatterRowsArgs& args, Threads& threads);
void AddRows(const AddRowsArgs& args, Threads& threads);

}  // namespace plinth::cpu

#endif  // PLINTH_HARDWARE_KERNELS_ROWS_CPU_H_
