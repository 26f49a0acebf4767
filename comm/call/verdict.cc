#include "plinth/comm/call/verdict.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "plinth/comm/call/rank_list.h"

namespace plinth::comm {
namespace {

absl::StatusCode CodeOf(PeerFailure::Kind kind) {
  switch (kind) {
    case PeerFailure::Kind::kLate:
      return absl::StatusCode::kDeadlineExceeded;
    case PeerFailure::Kind::kAborted:
      return absl::StatusCode::kAborted;
    case PeerFailure::Kind::kElsewhere:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

std::string ReasonOf(const PeerFailure& failure) {
  switch (failure.kind) {
    case PeerFailure::Kind::kGone:
      return failure.detail.empty() ? ": process is gone" : absl::StrCat(": ", failure.detail);
    case PeerFailure::Kind::kLeft:
      return ": it has left the group";
    case PeerFailure::Kind::kElsewhere:
      return ": it called something else";
    default:
      return "";
  }
}

int WorldRank(int rank, const GroupInfo* group) {
  const bool known = group != nullptr && rank >= 0 && rank < group->size();
  return known ? group->world_ranks[rank] : rank;
}

}  // namespace

std::string RankText(int rank, const GroupInfo* group) {
  return absl::StrCat("rank ", WorldRank(rank, group));
}

std::string SiteText(std::string_view file, int line) {
  if (line <= 0) return "";
  const size_t slash = file.rfind('/');
  if (slash != std::string_view::npos) file.remove_prefix(slash + 1);
  return absl::StrCat(" at ", std::string(file), ":", line);
}

absl::Status Verdict(const PeerFailure& failure, const Fingerprint& print, bool arriving,
                     absl::Duration timeout, const GroupInfo* group, std::string_view more) {
  std::vector<int> named;
  for (const int rank : failure.ranks) named.push_back(WorldRank(rank, group));
  const std::string ranks = RankList(named);
  if (failure.kind == PeerFailure::Kind::kAborted) {
    return absl::AbortedError(absl::StrCat("aborted by ", ranks, ": ", failure.detail));
  }
  const std::string_view name = group == nullptr ? std::string_view() : group->name;
  return absl::Status(CodeOf(failure.kind),
                      absl::StrCat(ranks, arriving ? " did not arrive at " : " did not finish ",
                                   ToString(print, name), " within ", absl::FormatDuration(timeout),
                                   ReasonOf(failure), std::string(more)));
}

}  // namespace plinth::comm
