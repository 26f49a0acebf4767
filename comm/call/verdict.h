// The one line that says which rank broke which call.
#ifndef PLINTH_COMM_CALL_VERDICT_H_
#define PLINTH_COMM_CALL_VERDICT_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "plinth/comm/call/call.h"
#include "plinth/comm/call/fingerprint.h"
#include "plinth/comm/call/group.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

// kDeadlineExceeded, kUnavailable or kAborted, as communicator.h describes; kFailedPrecondition for
// a rank that is elsewhere. `arriving`: the ranks were still to come to the call, rather than to
// finish it. `timeout` is what was waited. `group` gives its name and its ranks' names, which are
// their own numbers without it. `more` ends the line: "; its last call was barrier #16".
absl::Status Verdict(const PeerFailure& failure, const Fingerprint& print, bool arriving,
                     absl::Duration timeout, const GroupInfo* group = nullptr,
                     std::string_view more = {});

// "rank 3", as messages name rank `rank` of the group.
std::string RankText(int rank, const GroupInfo* group);
// " at trainer.cc:120"; empty when the line is not known.
std::string SiteText(std::string_view file, int line);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_CALL_VERDICT_H_
