// Whom an error of a collective names: the inverse of Verdict (comm/call/verdict.h).
#ifndef PLINTH_COMM_RECORDER_BLAME_H_
#define PLINTH_COMM_RECORDER_BLAME_H_

#include <vector>

#include "absl/status/status.h"
#include "plinth/comm/recorder/layout.h"

namespace plinth::comm {

struct Blame {
  FailureKind kind = FailureKind::kOther;
  // As the text calls them: by the rank that the launcher gave. Of an error that was passed on,
  // the ranks that the first finder named.
  std::vector<int> world_ranks;
};

// kOther, and nobody, for a status that is no verdict.
Blame BlameOf(const absl::Status& status);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_RECORDER_BLAME_H_
