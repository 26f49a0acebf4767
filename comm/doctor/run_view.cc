#include "plinth/comm/doctor/run_view.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plinth/comm/call/rank_list.h"
#include "plinth/comm/transport/shm/process.h"
#include "plinth/hardware/base/median.h"

namespace plinth::comm {
namespace {

// A rank whose dump began this much before the others' is of an earlier launch: files of the same
// name are replaced, so only ranks that this launch lacks can be so old.
constexpr int64_t kLaunchSpreadNs = int64_t{3600} * 1000000000;
constexpr int kMostGroupRanks = 1 << 16;  // shown; a hostile size must not take all memory

char StateLetter(int64_t process) {
  std::ifstream file(absl::StrCat("/proc/", process, "/stat"));
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  return name_end + 2 < line.size() ? line[name_end + 2] : '?';
}

// Keeps sums of times far from overflow, whatever a dump says.
constexpr int64_t kMostOffsetNs = int64_t{1} << 61;

// What to add to the times of `rank` to get those of `reference`.
int64_t ClockOffset(const RankView& rank, const RankView& reference) {
  const FlightDump& own = *rank.dump;
  const FlightDump& other = *reference.dump;
  if (!own.boot.empty() && own.boot == other.boot) return 0;
  std::vector<int64_t> differences;
  for (const RecordedCall& call : own.calls) {
    const RecordedCall* theirs = reference.Find(call.print.sequence);
    if (call.arrived_ns == 0 || theirs == nullptr || theirs->arrived_ns == 0) continue;
    differences.push_back(theirs->arrived_ns - call.arrived_ns);
  }
  const int64_t offset = differences.empty() ? (own.realtime_ns - own.monotonic_ns) -
                                                   (other.realtime_ns - other.monotonic_ns)
                                             : Median(std::move(differences));
  return std::clamp(offset, -kMostOffsetNs, kMostOffsetNs);
}

void AlignClocks(GroupView& group) {
  const RankView* reference = nullptr;
  for (RankView& rank : group.ranks) {
    if (rank.dump == nullptr) continue;
    if (reference == nullptr) {
      reference = &rank;
      group.wall_clock_s = 1e-9 * static_cast<double>(rank.dump->realtime_ns) -
                           1e-9 * static_cast<double>(rank.dump->monotonic_ns);
    }
    rank.clock_ns = ClockOffset(rank, *reference);
  }
}

// Dumps of the launch that started last.
std::vector<const FlightDump*> OfLatestRun(const DumpDirectory& directory, RunView& view) {
  const FlightDump* newest = nullptr;
  for (const FlightDump& dump : directory.dumps) {
    if (newest == nullptr || dump.realtime_ns > newest->realtime_ns) newest = &dump;
  }
  std::vector<const FlightDump*> dumps;
  if (newest == nullptr) return dumps;
  view.run = newest->run;
  int others = 0;
  for (const FlightDump& dump : directory.dumps) {
    if (dump.run == newest->run && newest->realtime_ns - dump.realtime_ns < kLaunchSpreadNs) {
      dumps.push_back(&dump);
    } else {
      ++others;
    }
  }
  if (others > 0) {
    view.notes.push_back(absl::StrCat(others, " dumps of earlier runs in the directory left out"));
  }
  return dumps;
}

GroupView MakeGroup(const std::string& name, const std::vector<const FlightDump*>& dumps,
                    const ProcessProbe& probe, int64_t now_ns, std::vector<std::string>& notes) {
  GroupView group;
  group.name = name;
  const FlightDump* newest = *std::max_element(
      dumps.begin(), dumps.end(),
      [](const FlightDump* a, const FlightDump* b) { return a->realtime_ns < b->realtime_ns; });
  group.ranks.resize(std::min(newest->size, kMostGroupRanks));
  for (const FlightDump* dump : dumps) {
    if (dump->size != newest->size || dump->rank >= group.size()) {
      notes.push_back(absl::StrCat("group ", name, ": ", dump->path, " left out, it is of ",
                                   dump->size, " ranks, not ", newest->size));
      continue;
    }
    RankView& rank = group.ranks[dump->rank];
    if (rank.dump != nullptr && rank.dump->realtime_ns >= dump->realtime_ns) continue;
    rank.dump = dump;
    rank.process = probe(*dump);
  }
  group.world_ranks = newest->world_ranks;
  AlignClocks(group);
  for (const RankView& rank : group.ranks) {
    if (rank.lives() && rank.dump->life != GroupLife::kLeft) group.now_ns = rank.At(now_ns);
  }
  return group;
}

void NoteGaps(const GroupView& group, std::vector<std::string>& notes) {
  const std::vector<int> missing = group.Missing();
  if (!missing.empty()) {
    notes.push_back(
        absl::StrCat("no dump of ", group.RankNames(missing), " of group ", group.name));
  }
  for (int rank = 0; rank < group.size(); ++rank) {
    const FlightDump* dump = group.ranks[rank].dump;
    if (dump == nullptr) continue;
    if (dump->damaged_records > 0) {
      notes.push_back(absl::StrCat("group ", group.name, ", ", group.RankName(rank), ": ",
                                   dump->damaged_records, " damaged records left out"));
    }
    if (dump->cut_short) {
      notes.push_back(absl::StrCat("group ", group.name, ", ", group.RankName(rank),
                                   ": its dump is cut short"));
    }
  }
}

}  // namespace

bool IsCollective(OpKind op) { return op != OpKind::kSend && op != OpKind::kReceive; }

ProcessState ProbeProcess(const FlightDump& dump) {
  char host[64] = {};
  gethostname(host, sizeof(host) - 1);
  // Containers of one machine share the boot, but not the numbers of processes.
  if (dump.boot.empty() || dump.boot != BootId() || dump.host != host) {
    return ProcessState::kUnknown;
  }
  const std::optional<int64_t> start = ProcessStartTicks(static_cast<pid_t>(dump.process));
  if (!start.has_value() || *start != dump.process_start) return ProcessState::kEnded;
  return StateLetter(dump.process) == 'T' ? ProcessState::kStopped : ProcessState::kRunning;
}

const RecordedCall* RankView::last() const {
  return dump == nullptr || dump->calls.empty() ? nullptr : &dump->calls.back();
}

const RecordedCall* RankView::Find(uint64_t sequence) const {
  if (dump == nullptr) return nullptr;
  for (auto call = dump->calls.rbegin(); call != dump->calls.rend(); ++call) {
    if (call->print.sequence == sequence && IsCollective(call->print.op)) return &*call;
  }
  return nullptr;
}

const RecordedCall* RankView::last_collective() const {
  if (dump == nullptr) return nullptr;
  for (auto call = dump->calls.rbegin(); call != dump->calls.rend(); ++call) {
    if (IsCollective(call->print.op)) return &*call;
  }
  return nullptr;
}

uint64_t RankView::last_started() const {
  return last_collective() == nullptr ? 0 : last_collective()->print.sequence;
}

uint64_t RankView::last_completed() const {
  const RecordedCall* call = last_collective();
  if (call == nullptr) return 0;
  return call->state == CallState::kDone ? call->print.sequence : call->print.sequence - 1;
}

bool RankView::in_call() const { return last() != nullptr && last()->state != CallState::kDone; }

int64_t RankView::last_event_ns() const {
  if (dump == nullptr) return 0;
  int64_t latest = std::max(dump->life_ns, dump->failure ? dump->failure->at_ns : 0);
  if (last() != nullptr) {
    latest = std::max({latest, last()->started_ns, last()->arrived_ns, last()->finished_ns});
  }
  return At(latest);
}

int GroupView::WorldRank(int rank) const {
  return rank < static_cast<int>(world_ranks.size()) ? world_ranks[rank] : rank;
}

std::string GroupView::RankName(int rank) const { return absl::StrCat("rank ", WorldRank(rank)); }

std::string GroupView::RankNames(const std::vector<int>& ranks) const {
  std::vector<int> names;
  for (const int rank : ranks) names.push_back(WorldRank(rank));
  return RankList(names);
}

std::vector<int> GroupView::Missing() const {
  std::vector<int> missing;
  for (int rank = 0; rank < size(); ++rank) {
    if (ranks[rank].dump == nullptr) missing.push_back(rank);
  }
  return missing;
}

int64_t GroupView::end_ns() const {
  int64_t end = now_ns;
  for (const RankView& rank : ranks) end = std::max(end, rank.last_event_ns());
  return end;
}

RunView MakeRunView(const DumpDirectory& directory, const ProcessProbe& probe, int64_t now_ns) {
  RunView view;
  for (const DumpDirectory::Unreadable& file : directory.unreadable) {
    view.notes.push_back(absl::StrCat(file.path, ": ", file.reason));
  }
  std::map<std::pair<std::string, uint64_t>, std::vector<const FlightDump*>> by_group;
  std::map<std::string, std::set<uint64_t>> ids;
  for (const FlightDump* dump : OfLatestRun(directory, view)) {
    by_group[{dump->group, dump->group_id}].push_back(dump);
    ids[dump->group].insert(dump->group_id);
  }
  for (const auto& [key, dumps] : by_group) {
    const bool alone = ids[key.first].size() == 1;
    const std::string name =
        alone ? key.first
              : absl::StrCat(key.first, " [", absl::StrJoin(dumps.front()->world_ranks, " "), "]");
    view.groups.push_back(MakeGroup(name, dumps, probe, now_ns, view.notes));
  }
  std::stable_sort(view.groups.begin(), view.groups.end(),
                   [](const GroupView& a, const GroupView& b) { return a.size() > b.size(); });
  for (const GroupView& group : view.groups) NoteGaps(group, view.notes);
  return view;
}

}  // namespace plinth::comm
