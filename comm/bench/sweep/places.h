// Where the ranks of a group run.
#ifndef PLINTH_COMM_BENCH_SWEEP_PLACES_H_
#define PLINTH_COMM_BENCH_SWEEP_PLACES_H_

#include "absl/status/status.h"
#include "plinth/comm/bench/report/report.h"
#include "plinth/comm/collective/communicator.h"

namespace plinth::comm {

// Fills in ranks, hosts, CPUs and whether each rank has one to itself. Called by every rank; equal
// on all. A launcher may give each rank a CPU of its own, so what counts is what a host's ranks
// may use together.
absl::Status DescribePlaces(Communicator& comm, RunInfo& info);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_SWEEP_PLACES_H_
