// Runs a job's ranks as processes on this host.
#ifndef PLINTH_CLUSTER_LAUNCH_LOCAL_H_
#define PLINTH_CLUSTER_LAUNCH_LOCAL_H_

#include <atomic>
#include <string>

#include "absl/status/statusor.h"
#include "plinth/cluster/job/job.h"

namespace plinth::cluster {

// How a group ended. `exit_code` is what the launcher itself should exit with: 0 when all
// ranks ended with 0, kExitInterrupted when ranks stopped on request, otherwise the code of
// the rank that failed first (128 + signal when a signal killed it, as shells count).
struct GroupResult {
  int exit_code = 0;
  int restarts = 0;
  std::string verdict;  // "rank 1 was killed by SIGKILL (9)", for people; empty on success
  // A rank that failed has said why in a line "<program>: ..." on stderr, and no signal ended any,
  // but those that the launcher sent to end the group.
  bool explained = false;
};

// Starts the ranks, copies each line they print to stdout or stderr behind "[rank N] ", and
// waits. An error of the program ("train: ...", after the name of its file) that several ranks
// give word for word is copied once, for the one that said it first. When one fails, the others get
// SIGTERM, after the grace time SIGKILL, and the group starts again on a fresh port while the
// restart budget lasts. A rank that dies with the launcher's own death is not left behind
// (PR_SET_PDEATHSIG).
//
// `stop_signal`: when a signal handler stores a number there, it is passed on to all ranks
// and the group is not restarted. Call from a single-threaded program, once at a time.
//
// Errors: kInvalidArgument from CheckJob, kNotFound when the program cannot be executed,
// kResourceExhausted when no process or port can be had. Nothing is left running.
absl::StatusOr<GroupResult> RunLocal(const JobSpec& job, const std::atomic<int>& stop_signal);

}  // namespace plinth::cluster

#endif  // PLINTH_CLUSTER_LAUNCH_LOCAL_H_
