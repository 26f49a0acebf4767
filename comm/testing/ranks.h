// Runs the ranks of a group inside a test, as threads or as processes.
#ifndef PLINTH_COMM_TESTING_RANKS_H_
#define PLINTH_COMM_TESTING_RANKS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "plinth/comm/collective/communicator.h"
#include "plinth/comm/rendezvous/options.h"

namespace plinth::comm::testing {

// What a rank has to say at its end: by custom empty when all is well.
struct RankOutcome {
  std::string report;
  int signal = 0;  // that killed its process; 0 when it ended by itself
};

// The longest that ranks may take: three quarters of what Bazel gives the test, so that a hang is
// told while it can be; two minutes without Bazel.
absl::Duration RanksPatience();

// Runs `body(rank)` in `size` forked processes and waits for all. A child writes its report and
// ends without running the test's destructors. Call it while no other thread runs. Ranks that have
// not ended within `patience` are killed; their reports say what each was doing.
std::vector<RankOutcome> RunProcesses(int size, const std::function<std::string(int rank)>& body,
                                      absl::Duration patience = RanksPatience());

// Runs `body` in `size` threads over the mem transport. Threads cannot be killed: when some have
// not ended within `patience`, the process says what each was doing and dies.
std::vector<std::string> RunThreads(int size, absl::Duration timeout,
                                    const std::function<std::string(Communicator&)>& body,
                                    absl::Duration patience = RanksPatience());

// The same with options made by `options(rank)`; the group can be split.
std::vector<std::string> RunThreads(int size, const std::function<GroupOptions(int rank)>& options,
                                    const std::function<std::string(Communicator&)>& body,
                                    absl::Duration patience = RanksPatience());

// Options of one rank of a group on this host that meets at `port`.
CommOptions LocalOptions(int rank, int size, int port, TransportKind transport,
                         absl::Duration timeout);

// A port that was free a moment ago.
int FreePort();

}  // namespace plinth::comm::testing

#endif  // PLINTH_COMM_TESTING_RANKS_H_
