#include "plinth/comm/doctor/mismatch.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plinth::comm {
namespace {

using Calls = std::vector<std::pair<int, const RecordedCall*>>;
std::map<uint64_t, Calls> CallsOfSeveral(const GroupView& group) {
  std::map<uint64_t, Calls> by_sequence;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (group.ranks[rank].dump == nullptr) continue;
    for (const RecordedCall& call : group.ranks[rank].dump->calls) {
      if (!IsCollective(call.print.op)) continue;
      by_sequence[call.print.sequence].push_back({rank, &call});
    }
  }
  return by_sequence;
}
const RecordedCall* MostCommon(const Calls& calls) {
  const RecordedCall* best = nullptr;
  int64_t best_votes = 0;
  for (const auto& [rank, call] : calls) {
    const int64_t votes = std::count_if(calls.begin(), calls.end(), [call = call](const auto& c) {
      return c.second->print == call->print;
    });
    if (votes > best_votes) {
      best = call;
      best_votes = votes;
    }
  }
  return best;
}

}  // namespace

std::string SiteOf(const RecordedCall& call) {
  return call.file.empty() ? "" : absl::StrCat(" at ", call.file, ":", call.line);
}

std::string CallOf(const GroupView& group, const RecordedCall& call) {
  return ToString(call.print, group.name);
}

std::optional<Finding> FindMismatch(const GroupView& group) {
  for (const auto& [sequence, calls] : CallsOfSeveral(group)) {
    std::map<int, const RecordedCall*> odd;
    const RecordedCall* common = MostCommon(calls);
    for (const auto& [rank, call] : calls) {
      if (!(call->print == common->print)) odd[rank] = call;
    }
    if (odd.empty()) continue;
    Finding finding{.kind = FindingKind::kMismatch, .sequence = sequence};
    std::vector<std::string> texts;
    for (const auto& [rank, call] : odd) {
      finding.ranks.push_back(rank);
      texts.push_back(
          absl::StrCat(group.RankName(rank), " called ", ToString(call->print), SiteOf(*call)));
    }
    const size_t others = calls.size() - odd.size();
    finding.text = absl::StrCat(absl::StrJoin(texts, ", "), ", but ",
                                others == 1 ? "the other" : absl::StrCat("the other ", others),
                                " called ", CallOf(group, *common), SiteOf(*common));
    return finding;
  }
  return std::nullopt;
}

}  // namespace plinth::comm
