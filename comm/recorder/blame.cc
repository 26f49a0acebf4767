#include "plinth/comm/recorder/blame.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace plinth::comm {
namespace {

// "rank 3 did ..." or "ranks 1, 3 did ...": the numbers.
std::vector<int> LeadingRanks(absl::string_view text) {
  std::vector<int> ranks;
  if (!absl::ConsumePrefix(&text, "ranks ") && !absl::ConsumePrefix(&text, "rank ")) return ranks;
  do {
    size_t digits = 0;
    while (digits < text.size() && absl::ascii_isdigit(text[digits])) ++digits;
    int rank = 0;
    if (!absl::SimpleAtoi(text.substr(0, digits), &rank)) return ranks;
    ranks.push_back(rank);
    text.remove_prefix(digits);
  } while (absl::ConsumePrefix(&text, ", "));
  return ranks;
}

}  // namespace

Blame BlameOf(const absl::Status& status) {
  Blame blame;
  absl::string_view text = status.message();
  switch (status.code()) {
    case absl::StatusCode::kDeadlineExceeded:
      blame.kind = FailureKind::kLate;
      break;
    case absl::StatusCode::kUnavailable:
      blame.kind = absl::StrContains(text, ": it has left the group") ? FailureKind::kLeft
                                                                      : FailureKind::kGone;
      break;
    case absl::StatusCode::kFailedPrecondition:
      blame.kind = FailureKind::kMismatch;
      break;
    case absl::StatusCode::kAborted:
      blame.kind = FailureKind::kAborted;
      // "aborted by rank 0: rank 3 did not ..."
      text.remove_prefix(std::min(text.find(": "), text.size()));
      absl::ConsumePrefix(&text, ": ");
      break;
    default:
      return blame;
  }
  blame.world_ranks = LeadingRanks(text);
  return blame;
}

}  // namespace plinth::comm
