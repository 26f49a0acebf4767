// The dumps of one run, brought together: by group, by rank, on one clock.
#ifndef PLINTH_COMM_DOCTOR_RUN_VIEW_H_
#define PLINTH_COMM_DOCTOR_RUN_VIEW_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "plinth/comm/recorder/dump.h"

namespace plinth::comm {

enum class ProcessState { kUnknown, kRunning, kStopped, kEnded };

// What became of the process that wrote a dump.
using ProcessProbe = std::function<ProcessState(const FlightDump& dump)>;
// Asks this machine; kUnknown for dumps of another host or another boot.
ProcessState ProbeProcess(const FlightDump& dump);

// What one rank left behind about one group.
struct RankView {
  const FlightDump* dump = nullptr;  // null: none that can be read
  ProcessState process = ProcessState::kUnknown;
  int64_t clock_ns = 0;  // add to the dump's times to get the group's

  bool lives() const {
    return process == ProcessState::kRunning || process == ProcessState::kStopped;
  }
  // The call that it made last, as far as the ring remembers; null before the first.
  const RecordedCall* last() const;
  const RecordedCall* last_collective() const;
  // A collective by its number in the group.
  const RecordedCall* Find(uint64_t sequence) const;
  uint64_t last_started() const;  // sequence; sends and receives between two ranks do not count
  uint64_t last_completed() const;
  // It is in a call, or was when it failed.
  bool in_call() const;
  // Of the group's clock: when anything was last heard of it.
  int64_t last_event_ns() const;
  int64_t At(int64_t dump_ns) const { return dump_ns + clock_ns; }
};

struct GroupView {
  std::string name;
  std::vector<RankView> ranks;   // by rank of the group
  std::vector<int> world_ranks;  // the same; the own numbers when no dump says them
  double wall_clock_s = 0;       // add to the group's clock in seconds to get the time of day
  int64_t now_ns = 0;            // of the group's clock; 0 when no process of it lives here

  int size() const { return static_cast<int>(ranks.size()); }
  // The rank that the launcher gave; messages and reports call ranks by it.
  int WorldRank(int rank) const;
  std::string RankName(int rank) const;                        // "rank 5"
  std::string RankNames(const std::vector<int>& ranks) const;  // "ranks 5, 7"
  std::vector<int> Missing() const;
  // Of the group's clock: now while a process of it lives here, else the last event of any rank.
  int64_t end_ns() const;
};

struct RunView {
  std::string run;
  std::vector<GroupView> groups;   // the largest first
  std::vector<std::string> notes;  // what is missing, damaged or left out
};

// Whether all ranks of the group make the call, under one numbering.
bool IsCollective(OpKind op);

// Of several runs in the directory the one that started last is shown. The dumps outlive the view.
// Clocks: ranks of one boot share one. Others are aligned by the calls: all ranks leave the meeting
// at the beginning of a call at nearly one moment.
// `now_ns`: CLOCK_MONOTONIC of this machine.
RunView MakeRunView(const DumpDirectory& directory, const ProcessProbe& probe, int64_t now_ns);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_DOCTOR_RUN_VIEW_H_
