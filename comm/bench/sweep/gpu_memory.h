// Memory that a GPU works in and the host fills and checks.
#ifndef PLINTH_COMM_BENCH_SWEEP_GPU_MEMORY_H_
#define PLINTH_COMM_BENCH_SWEEP_GPU_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "plinth/comm/transport/shared_space.h"

namespace plinth::comm {

// Managed memory of CUDA: pages move to whoever touches them, so the first call after the host
// has written pays for that, and the calls of a batch, which nobody interrupts, do not. Freed with
// the last copy; `device` stays in use until then. kUnavailable: no driver, or what it said.
absl::StatusOr<SharedMemory> AllocateGpuMemory(int device, int64_t bytes,
                                               const std::string& driver = "libcuda.so.1");

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_SWEEP_GPU_MEMORY_H_
