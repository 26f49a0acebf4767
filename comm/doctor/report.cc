#include "plinth/comm/doctor/report.h"

#include <algorithm>
#include <boost/json.hpp>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "plinth/comm/doctor/statistics.h"
#include "plinth/hardware/text/utf8.h"

namespace plinth::comm {
namespace {

namespace json = boost::json;

constexpr int kMostStragglers = 8;
constexpr size_t kMostSiteCharacters = 32;

double Milliseconds(int64_t ns) { return 1e-6 * static_cast<double>(ns); }
double SecondsOf(int64_t ns) { return 1e-9 * static_cast<double>(ns); }

std::string SiteOf(const RecordedCall* call) {
  if (call == nullptr || call->file.empty()) return "-";
  std::string site = absl::StrCat(call->file, ":", call->line);
  if (site.size() > kMostSiteCharacters) {
    site = "..." + site.substr(site.size() - kMostSiteCharacters + 3);
  }
  return site;
}

std::string ProcessOf(const RankView& rank) {
  switch (rank.process) {
    case ProcessState::kRunning:
      return absl::StrCat(rank.dump->process, " runs");
    case ProcessState::kStopped:
      return absl::StrCat(rank.dump->process, " stopped");
    case ProcessState::kEnded:
      return absl::StrCat(rank.dump->process, " ended");
    case ProcessState::kUnknown:
      break;
  }
  return absl::StrCat(rank.dump->process);
}

// Where a rank is now, or was at its end.
std::string PlaceOf(const RankView& rank) {
  if (rank.in_call()) {
    const RecordedCall& call = *rank.last();
    const char* how = call.state == CallState::kFailed    ? "failed in "
                      : call.state == CallState::kArrived ? "moves data in "
                                                          : "waits in ";
    return absl::StrCat(how, ToString(call.print));
  }
  switch (rank.dump->life) {
    case GroupLife::kLeft:
      return "has left the group";
    case GroupLife::kLeaving:
      return "tears the group down";
    case GroupLife::kMember:
      break;
  }
  return rank.last() == nullptr ? "has made no call" : "between calls";
}

std::string RankTable(const GroupView& group) {
  std::string text = absl::StrFormat("%5s  %-16s %-14s %9s  %9s  %-32s %s\n", "rank", "host",
                                     "process", "completed", "since s", "last call at", "now");
  const int64_t end = group.end_ns();
  for (int r = 0; r < group.size(); ++r) {
    const RankView& rank = group.ranks[r];
    if (rank.dump == nullptr) {
      absl::StrAppendFormat(&text, "%5d  no dump\n", group.WorldRank(r));
      continue;
    }
    const std::string host = rank.dump->host.substr(0, 16);
    absl::StrAppendFormat(&text, "%5d  %-16s %-14s %9s  %9.3f  %-32s %s\n", group.WorldRank(r),
                          host, ProcessOf(rank), absl::StrCat("#", rank.last_completed()),
                          SecondsOf(end - rank.last_event_ns()), SiteOf(rank.last()),
                          PlaceOf(rank));
  }
  return text;
}

// Of one call: when the first rank entered it, who came last and how it went on.
std::string CallLine(const GroupView& group, uint64_t sequence) {
  int64_t first = INT64_MAX, last = INT64_MIN, end = INT64_MIN;
  int last_rank = -1, entered = 0, done = 0;
  const RecordedCall* any = nullptr;
  for (int r = 0; r < group.size(); ++r) {
    const RecordedCall* call = group.ranks[r].Find(sequence);
    if (call == nullptr) continue;
    any = call;
    ++entered;
    const int64_t at = group.ranks[r].At(call->started_ns);
    first = std::min(first, at);
    if (at > last) {
      last = at;
      last_rank = r;
    }
    if (call->state != CallState::kDone) continue;
    ++done;
    end = std::max(end, group.ranks[r].At(call->finished_ns));
  }
  if (any == nullptr) return "";
  const std::string took = done == 0 ? "-" : absl::StrFormat("%.3f", Milliseconds(end - first));
  return absl::StrFormat("%10.3f  %-38s %7s  %7s  %4d +%-9.3f %9s\n",
                         -SecondsOf(group.end_ns() - first), ToString(any->print),
                         absl::StrCat(entered, "/", group.size()),
                         absl::StrCat(done, "/", group.size()), group.WorldRank(last_rank),
                         Milliseconds(last - first), took);
}

std::string CallTable(const GroupView& group, int calls) {
  std::set<uint64_t> sequences;
  for (const RankView& rank : group.ranks) {
    if (rank.dump == nullptr) continue;
    const auto& recorded = rank.dump->calls;
    const size_t begin = recorded.size() - std::min<size_t>(recorded.size(), calls);
    for (size_t i = begin; i < recorded.size(); ++i) {
      if (IsCollective(recorded[i].print.op)) sequences.insert(recorded[i].print.sequence);
    }
  }
  if (sequences.empty()) return "";
  std::string text = absl::StrFormat("%10s  %-38s %7s  %7s  %-15s %9s\n", "at s", "call", "entered",
                                     "done", "last rank, ms", "took ms");
  const size_t skip = sequences.size() - std::min<size_t>(sequences.size(), calls);
  for (auto sequence = std::next(sequences.begin(), static_cast<std::ptrdiff_t>(skip));
       sequence != sequences.end(); ++sequence) {
    text += CallLine(group, *sequence);
  }
  return text;
}

std::string StragglerTable(const GroupView& group) {
  const GroupStatistics statistics = MeasureGroup(group);
  if (statistics.calls == 0) return "";
  std::string text = absl::StrFormat(
      "waited for, in the last %d calls that all completed\n%5s  %6s  %13s  %14s  %16s\n",
      statistics.calls, "rank", "last", "waited for ms", "median late ms", "median moving ms");
  const size_t shown = std::min<size_t>(statistics.ranks.size(), kMostStragglers);
  for (size_t i = 0; i < shown; ++i) {
    const RankStatistics& rank = statistics.ranks[i];
    absl::StrAppendFormat(
        &text, "%5d  %5.0f%%  %13.3f  %14.3f  %16.3f\n", group.WorldRank(rank.rank),
        100.0 * static_cast<double>(rank.times_last) / static_cast<double>(statistics.calls),
        Milliseconds(rank.waited_for_ns), Milliseconds(rank.median_late_ns),
        Milliseconds(rank.median_moving_ns));
  }
  if (shown < statistics.ranks.size()) {
    absl::StrAppend(&text, "       and ", statistics.ranks.size() - shown, " more ranks\n");
  }
  return text;
}

std::string TransportOf(const GroupView& group) {
  for (const RankView& rank : group.ranks) {
    if (rank.dump != nullptr && !rank.dump->transport.empty()) return rank.dump->transport;
  }
  return "an unknown transport";
}

// Paths may hold any bytes; JSON is UTF-8.
json::string Text(std::string_view bytes) { return json::string(ReplaceInvalidUtf8(bytes)); }

json::array ListOf(const std::vector<int>& numbers) {
  return json::array(numbers.begin(), numbers.end());
}

json::object FindingJson(const Finding& finding) {
  return {{"kind", Text(FindingKindName(finding.kind))},
          {"text", Text(finding.text)},
          {"group", Text(finding.group)},
          {"sequence", finding.sequence},
          {"ranks", ListOf(finding.ranks)},
          {"world_ranks", ListOf(finding.world_ranks)}};
}

json::object RankJson(const GroupView& group, const RankStatistics& statistics) {
  const RankView& rank = group.ranks[statistics.rank];
  if (rank.dump == nullptr) return {{"rank", statistics.rank}, {"dump", nullptr}};
  json::object object = {{"rank", statistics.rank},
                         {"dump", Text(rank.dump->path)},
                         {"world_rank", group.WorldRank(statistics.rank)},
                         {"host", Text(rank.dump->host)},
                         {"process", rank.dump->process},
                         {"completed", rank.last_completed()},
                         {"calls_made", rank.dump->calls_made},
                         {"now", Text(PlaceOf(rank))}};
  if (rank.last() != nullptr) {
    object["last_call"] = Text(ToString(rank.last()->print));
    object["file"] = Text(rank.last()->file);
    object["line"] = rank.last()->line;
  }
  object["silent_s"] = SecondsOf(group.end_ns() - rank.last_event_ns());
  object["times_last"] = statistics.times_last;
  object["waited_for_ms"] = Milliseconds(statistics.waited_for_ns);
  object["median_late_ms"] = Milliseconds(statistics.median_late_ns);
  object["median_moving_ms"] = Milliseconds(statistics.median_moving_ns);
  if (rank.dump->failure.has_value()) object["failure"] = Text(rank.dump->failure->text);
  return object;
}

json::object GroupJson(const GroupView& group) {
  const GroupStatistics statistics = MeasureGroup(group);
  std::vector<RankStatistics> by_rank(group.size());
  for (int rank = 0; rank < group.size(); ++rank) by_rank[rank].rank = rank;
  for (const RankStatistics& rank : statistics.ranks) by_rank[rank.rank] = rank;
  json::array ranks;
  for (const RankStatistics& rank : by_rank) ranks.push_back(RankJson(group, rank));
  return {{"name", Text(group.name)},
          {"size", group.size()},
          {"transport", Text(TransportOf(group))},
          {"complete_calls", statistics.calls},
          {"ranks", std::move(ranks)}};
}

}  // namespace

std::string TextReport(const RunView& run, const Diagnosis& diagnosis, int calls) {
  std::string text = absl::StrCat(diagnosis.verdict.text, "\n");
  for (const Finding& finding : diagnosis.others) {
    absl::StrAppend(&text, "also: ", finding.text, "\n");
  }
  for (const GroupView& group : run.groups) {
    absl::StrAppend(&text, "\ngroup ", group.name, ": ", group.size(), " ranks over ",
                    TransportOf(group), run.run.empty() ? "" : absl::StrCat(", run ", run.run),
                    "\n", RankTable(group));
    for (const std::string& table : {CallTable(group, calls), StragglerTable(group)}) {
      if (!table.empty()) absl::StrAppend(&text, "\n", table);
    }
  }
  if (!run.notes.empty()) text += "\n";
  for (const std::string& note : run.notes) absl::StrAppend(&text, "note: ", note, "\n");
  return text;
}

std::string JsonReport(const RunView& run, const Diagnosis& diagnosis) {
  json::array others, groups, notes;
  for (const Finding& finding : diagnosis.others) others.push_back(FindingJson(finding));
  for (const GroupView& group : run.groups) groups.push_back(GroupJson(group));
  for (const std::string& note : run.notes) notes.push_back(Text(note));
  return json::serialize(json::object{{"verdict", FindingJson(diagnosis.verdict)},
                                      {"others", std::move(others)},
                                      {"run", Text(run.run)},
                                      {"groups", std::move(groups)},
                                      {"notes", std::move(notes)}}) +
         "\n";
}

}  // namespace plinth::comm
