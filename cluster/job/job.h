// JobSpec: the processes of one run, before anyone decides where they start.
#ifndef PLINTH_CLUSTER_JOB_JOB_H_
#define PLINTH_CLUSTER_JOB_JOB_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace plinth::cluster {

// `ranks` copies of one command, told apart by torchrun's variables (RANK, WORLD_SIZE,
// LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT).
struct JobSpec {
  std::vector<std::string> command;  // program and arguments; the program is a path or on PATH
  int ranks = 1;
  // The whole group is started again this many times after a rank failed.
  int max_restarts = 0;
  // Between SIGTERM and SIGKILL when the group ends.
  absl::Duration grace = absl::Seconds(30);
  std::vector<std::pair<std::string, std::string>> environment;  // added to the launcher's own
};

// Of one host. A mistyped number must not fill the process table.
constexpr int kMaxRanks = 1024;

// All violations in one message: empty command, ranks outside 1 to kMaxRanks, negative restarts or
// grace.
absl::Status CheckJob(const JobSpec& job);

// Set for ranks whose lines the launcher marks with their rank, so that they need not.
constexpr char kLinesMarked[] = "PLINTH_LINES_MARKED";

// Exit codes that programs of a job use (sysexits.h has EX_TEMPFAIL = 75): stopped on
// request with everything saved. Starting the same command again goes on from there.
constexpr int kExitInterrupted = 75;

}  // namespace plinth::cluster

#endif  // PLINTH_CLUSTER_JOB_JOB_H_
