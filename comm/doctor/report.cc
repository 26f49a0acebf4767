#include "plinth/comm/doctor/report.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "plinth/comm/doctor/statistics.h"

namespace plinth::comm {
namespace {

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

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

template <typename Items, typename Item>
std::string JsonList(const Items& items, const Item& item) {
  std::string out = "[";
  for (const auto& value : items) absl::StrAppend(&out, out.size() > 1 ? ", " : "", item(value));
  return out + "]";
}

std::string JsonFinding(const Finding& finding) {
  const auto number = [](int rank) { return absl::StrCat(rank); };
  return absl::StrCat("{\"kind\": ", Quoted(std::string(FindingKindName(finding.kind))),
                      ", \"text\": ", Quoted(finding.text), ", \"group\": ", Quoted(finding.group),
                      ", \"sequence\": ", finding.sequence,
                      ", \"ranks\": ", JsonList(finding.ranks, number),
                      ", \"world_ranks\": ", JsonList(finding.world_ranks, number), "}");
}

std::string JsonRank(const GroupView& group, int r, const RankStatistics& statistics) {
  const RankView& rank = group.ranks[r];
  if (rank.dump == nullptr) return absl::StrCat("{\"rank\": ", r, ", \"dump\": null}");
  std::string out = absl::StrCat(
      "{\"rank\": ", r, ", \"dump\": ", Quoted(rank.dump->path),
      ", \"world_rank\": ", group.WorldRank(r), ", \"host\": ", Quoted(rank.dump->host),
      ", \"process\": ", rank.dump->process, ", \"completed\": ", rank.last_completed(),
      ", \"calls_made\": ", rank.dump->calls_made, ", \"now\": ", Quoted(PlaceOf(rank)));
  if (rank.last() != nullptr) {
    absl::StrAppend(&out, ", \"last_call\": ", Quoted(ToString(rank.last()->print)),
                    ", \"file\": ", Quoted(rank.last()->file), ", \"line\": ", rank.last()->line);
  }
  absl::StrAppendFormat(&out, ", \"silent_s\": %.6f",
                        SecondsOf(group.end_ns() - rank.last_event_ns()));
  absl::StrAppendFormat(&out,
                        ", \"times_last\": %d, \"waited_for_ms\": %.6f, \"median_late_ms\": %.6f, "
                        "\"median_moving_ms\": %.6f",
                        statistics.times_last, Milliseconds(statistics.waited_for_ns),
                        Milliseconds(statistics.median_late_ns),
                        Milliseconds(statistics.median_moving_ns));
  if (rank.dump->failure.has_value()) {
    absl::StrAppend(&out, ", \"failure\": ", Quoted(rank.dump->failure->text));
  }
  return out + "}";
}

std::string JsonGroup(const GroupView& group) {
  const GroupStatistics statistics = MeasureGroup(group);
  std::vector<RankStatistics> by_rank(group.size());
  for (const RankStatistics& rank : statistics.ranks) by_rank[rank.rank] = rank;
  return absl::StrCat("{\"name\": ", Quoted(group.name), ", \"size\": ", group.size(),
                      ", \"transport\": ", Quoted(TransportOf(group)),
                      ", \"complete_calls\": ", statistics.calls, ", \"ranks\": ",
                      JsonList(by_rank,
                               [&](const RankStatistics& rank) {
                                 return JsonRank(group, static_cast<int>(&rank - by_rank.data()),
                                                 rank);
                               }),
                      "}");
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
  return absl::StrCat("{\"verdict\": ", JsonFinding(diagnosis.verdict),
                      ", \"others\": ", JsonList(diagnosis.others, JsonFinding),
                      ", \"run\": ", Quoted(run.run),
                      ", \"groups\": ", JsonList(run.groups, JsonGroup),
                      ", \"notes\": ", JsonList(run.notes, Quoted), "}\n");
}

}  // namespace plinth::comm
