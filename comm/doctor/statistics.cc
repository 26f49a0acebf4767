#include "plinth/comm/doctor/statistics.h"

#include <algorithm>
#include <utility>

#include "plinth/hardware/base/median.h"

namespace plinth::comm {
namespace {

// Calls of one sequence on every rank; empty when one is missing or has not ended well.
std::vector<const RecordedCall*> CompleteCalls(const GroupView& group, uint64_t sequence) {
  std::vector<const RecordedCall*> calls;
  for (const RankView& rank : group.ranks) {
    const RecordedCall* call = rank.Find(sequence);
    if (call == nullptr || call->state != CallState::kDone) return {};
    calls.push_back(call);
  }
  return calls;
}

}  // namespace

GroupStatistics MeasureGroup(const GroupView& group) {
  GroupStatistics result;
  std::vector<std::vector<int64_t>> late(group.size()), moving(group.size());
  for (int rank = 0; rank < group.size(); ++rank) result.ranks.push_back({.rank = rank});
  const FlightDump* any = group.ranks.empty() ? nullptr : group.ranks.front().dump;
  if (any == nullptr || group.size() < 2) return result;
  for (const RecordedCall& candidate : any->calls) {
    if (!IsCollective(candidate.print.op)) continue;
    const auto calls = CompleteCalls(group, candidate.print.sequence);
    if (calls.empty()) continue;
    ++result.calls;
    std::vector<std::pair<int64_t, int>> entered;
    for (int rank = 0; rank < group.size(); ++rank) {
      entered.push_back({group.ranks[rank].At(calls[rank]->started_ns), rank});
      moving[rank].push_back(calls[rank]->finished_ns - calls[rank]->arrived_ns);
    }
    std::sort(entered.begin(), entered.end());
    for (const auto& [at, rank] : entered) late[rank].push_back(at - entered.front().first);
    RankStatistics& last = result.ranks[entered.back().second];
    ++last.times_last;
    last.waited_for_ns += entered.back().first - entered[entered.size() - 2].first;
  }
  for (RankStatistics& rank : result.ranks) {
    rank.median_late_ns = Median(std::move(late[rank.rank]));
    rank.median_moving_ns = Median(std::move(moving[rank.rank]));
  }
  std::stable_sort(result.ranks.begin(), result.ranks.end(),
                   [](const RankStatistics& a, const RankStatistics& b) {
                     return a.waited_for_ns > b.waited_for_ns;
                   });
  return result;
}

}  // namespace plinth::comm
