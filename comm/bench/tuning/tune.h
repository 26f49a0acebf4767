// Measures what the tuner's cost table holds.
#ifndef PLINTH_COMM_BENCH_TUNING_TUNE_H_
#define PLINTH_COMM_BENCH_TUNING_TUNE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/comm/rendezvous/options.h"
#include "plinth/comm/transport/transport.h"
#include "plinth/comm/tuner/table.h"

namespace plinth::comm {

// Times messages of growing size that two ranks exchange, and reducing, and fits their costs; what
// it does not measure is as in DefaultTable. Called by both ranks; equal on none but rank 0.
// `one_host`: the link is a local one. Errors: kInvalidArgument when the group has not two ranks
// or times do not fit, kUnavailable when the other rank failed.
absl::StatusOr<CostTable> MeasureTable(Transport& transport, bool one_host);

// Connects the two ranks of `options`, measures, and writes rank 0's table to `path`. kUnavailable
// when that cannot be written.
absl::Status RunTune(const CommOptions& options, const std::string& path);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_TUNING_TUNE_H_
