// How the ranks of a benchmark come to be: started here, by a launcher, or by mpirun for us.
#ifndef PLINTH_COMM_BENCH_LAUNCH_LAUNCH_H_
#define PLINTH_COMM_BENCH_LAUNCH_LAUNCH_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/comm/rendezvous/environment_values.h"
#include "plinth/comm/rendezvous/options.h"

namespace plinth::comm {

// kFailedPrecondition when a launcher's variables promise more ranks than the `seen` that will
// form a group: each would run alone and report figures that look like those of all.
absl::Status CheckPromisedRanks(const EnvironmentLookup& lookup, int seen);

// Forks `ranks` processes that call `run` with options by which they find each other, and waits for
// all. The meaning of `base` besides rank, size and port is kept. Ranks that still wait for one
// that failed, or are not done `base.timeout` after rank 0, are ended; all are when this process
// ends, however it does. Returns what the rank that failed first had to say, and how many more
// did: one line for all. Call it while no other thread runs.
absl::Status SpawnRanks(int ranks, const CommOptions& base,
                        const std::function<absl::Status(const CommOptions& options)>& run);

// Whether mpirun started this process.
bool UnderMpirun(const EnvironmentLookup& lookup);
// Runs `mpirun -n ranks` of this program with the same arguments and returns its exit code. What
// its ranks say to stderr is passed on, a line that several of them say once. mpirun ends when this
// process does. kNotFound, with what to install: there is no mpirun.
absl::StatusOr<int> RunUnderMpirun(int ranks, char** argv);

// From now on this process is killed when the one that started it ends: a launcher's agent, say,
// that was killed itself and leaves its ranks behind.
void EndWithParent();

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_LAUNCH_LAUNCH_H_
