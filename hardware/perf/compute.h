// Arithmetic peaks of the CPUs that this process may use.
//
// Two limits, because they answer different questions: the multiply-add loop touches no memory
// and is what the CPU could do; the matrix product is what oneDNN makes of that.
#ifndef PLINTH_HARDWARE_PERF_COMPUTE_H_
#define PLINTH_HARDWARE_PERF_COMPUTE_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace plinth::perf {

struct ComputeOptions {
  int threads = 0;           // 0: as many as the limits feed
  int repetitions = 7;       // >= 1
  int64_t gemm_size = 2048;  // rows = columns = depth; 1 to 16384
};

// Giga (1e9) floating-point operations per second, f32; a multiply-add is two.
struct ComputeResult {
  double median_gflops = 0;
  double best_gflops = 0;
  int threads = 0;
  int samples = 0;
  int disturbed = 0;  // samples in which our threads had to wait for a CPU (see samples.h)
};

// C = A * B by dnnl_sgemm on an OpenMP team of `threads`, confined to as many CPUs; the team
// and its settings end with the call. Only the team's first thread is watched for waiting.
// A few elements of C are compared with sums in double.
// Errors: kInvalidArgument for options out of range; kInternal when oneDNN fails or computes
// something else; those of probe::Probe. Cost: 3 * 4 * gemm_size^2 bytes.
absl::StatusOr<ComputeResult> MeasureGemmPeak(const ComputeOptions& options);

// Independent multiply-adds in registers, one pinned thread per CPU, some 20 ms a repetition.
// Errors: as above, without oneDNN's.
absl::StatusOr<ComputeResult> MeasureFmaPeak(const ComputeOptions& options);

}  // namespace plinth::perf

#endif  // PLINTH_HARDWARE_PERF_COMPUTE_H_
