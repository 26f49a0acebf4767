// How long a collective takes, measured alike on all ranks.
#ifndef PLINTH_COMM_BENCH_MEASURE_H_
#define PLINTH_COMM_BENCH_MEASURE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "plinth/comm/collective/communicator.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {

// One line of the table. Bandwidths are in 1e9 bytes per second.
struct Measurement {
  int64_t count = 0;
  int64_t bytes = 0;  // of one rank's buffer
  // Per call, of the slowest rank; percentiles over batches of calls.
  double median_us = 0;
  double p10_us = 0;
  double p90_us = 0;
  // Algorithm bandwidth: bytes / time. Bus bandwidth: what each rank has to send at least,
  // 2 (n-1)/n of the bytes for an all-reduce, / time; it can be compared with a link's speed
  // whatever the number of ranks.
  double algorithm_bandwidth = 0;
  double bus_bandwidth = 0;
  int64_t errors = 0;  // wrong elements over all ranks
};

// Sums `count` elements of f32 or bf16 in place: verified once, then timed in `batches` batches
// of as many calls as move about 64 MiB (2 to 200). Every rank calls it with equal arguments and
// gets equal numbers. Errors are those of the collectives.
absl::StatusOr<Measurement> MeasureAllReduce(Communicator& comm, DType dtype, int64_t count,
                                             int batches);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_MEASURE_H_
