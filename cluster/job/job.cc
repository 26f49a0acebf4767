#include "plinth/cluster/job/job.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plinth::cluster {

absl::Status CheckJob(const JobSpec& job) {
  std::vector<std::string> violations;
  if (job.command.empty() || job.command[0].empty()) violations.push_back("no program to run");
  if (job.ranks < 1 || job.ranks > kMaxRanks) {
    violations.push_back(absl::StrCat("ranks must be 1 to ", kMaxRanks, ", is ", job.ranks));
  }
  if (job.max_restarts < 0) {
    violations.push_back(absl::StrCat("max_restarts must not be negative, is ", job.max_restarts));
  }
  if (job.grace < absl::ZeroDuration()) violations.push_back("grace must not be negative");
  if (violations.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("job: ", absl::StrJoin(violations, "; ")));
}

}  // namespace plinth::cluster
