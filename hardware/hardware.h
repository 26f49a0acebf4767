// Façade of the package: devices, tensors and kernels for another workspace.
//
// Include single headers instead where build time matters; each has its own target.
#ifndef PLINTH_HARDWARE_HARDWARE_H_
#define PLINTH_HARDWARE_HARDWARE_H_

// IWYU pragma: begin_exports
#include "plinth/hardware/device/allocator.h"
#include "plinth/hardware/device/device.h"
#include "plinth/hardware/device/registry.h"
#include "plinth/hardware/device/tensor.h"
#include "plinth/hardware/kernels/kernel.h"
#include "plinth/hardware/kernels/linear/linear.h"
#include "plinth/hardware/kernels/matmul/matmul.h"
#include "plinth/hardware/kernels/norm/norm.h"
#include "plinth/hardware/perf/bandwidth.h"
#include "plinth/hardware/probe/probe.h"
#include "plinth/hardware/threading/threads.h"
// IWYU pragma: end_exports

#endif  // PLINTH_HARDWARE_HARDWARE_H_
