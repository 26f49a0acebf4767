// The measurement itself, as one rank.
#ifndef PLINTH_COMM_BENCH_SWEEP_H_
#define PLINTH_COMM_BENCH_SWEEP_H_

#include "absl/status/status.h"
#include "plinth/comm/bench/config.h"
#include "plinth/comm/bench/peers/mpi/mpi_peer.h"
#include "plinth/comm/rendezvous/options.h"

namespace plinth::comm {

// Forms a group over each transport in turn and measures all that `config` asks for. Rank 0
// prints to stdout: the table as it grows, or JSON at the end. `peer`, which may be null, outlives
// the call. Errors: those of the communicator and of MPI; kInternal when results were wrong.
absl::Status RunSweep(const BenchConfig& config, const CommOptions& options, MpiPeer* peer);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_SWEEP_H_
