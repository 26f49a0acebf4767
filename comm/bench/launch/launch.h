// How the ranks of a benchmark come to be: started here, by a launcher, or by mpirun for us.
#ifndef PLINTH_COMM_BENCH_LAUNCH_LAUNCH_H_
#define PLINTH_COMM_BENCH_LAUNCH_LAUNCH_H_

#include <functional>

#include "absl/status/status.h"
#include "plinth/comm/rendezvous/environment_values.h"
#include "plinth/comm/rendezvous/options.h"

namespace plinth::comm {

// kFailedPrecondition when a launcher's variables promise more ranks than the `seen` that will
// form a group: each would run alone and report figures that look like those of all.
absl::Status CheckPromisedRanks(const EnvironmentLookup& lookup, int seen);

// Forks `ranks` processes that call `run` with options by which they find each other, waits for
// all and returns the worst exit code; a process that a signal ended counts as 1. The meaning of
// `base` besides rank, size and port is kept. Call it while no other thread runs.
int SpawnRanks(int ranks, const CommOptions& base,
               const std::function<int(const CommOptions& options)>& run);

// Whether mpirun started this process.
bool UnderMpirun(const EnvironmentLookup& lookup);
// Replaces this process by `mpirun -n ranks` of itself with the same arguments. Returns only when
// that fails: kNotFound, with what to install, when there is no mpirun.
absl::Status ExecUnderMpirun(int ranks, char** argv);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_LAUNCH_LAUNCH_H_
