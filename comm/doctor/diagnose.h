// Says from the dumps of a run which rank broke which call.
#ifndef PLINTH_COMM_DOCTOR_DIAGNOSE_H_
#define PLINTH_COMM_DOCTOR_DIAGNOSE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plinth/comm/doctor/run_view.h"

namespace plinth::comm {

enum class FindingKind {
  kNone,           // no fault found
  kMismatch,       // ranks called different things
  kProcessEnded,   // without leaving the group
  kStopped,        // by a signal or a debugger, while others wait
  kNeverEntered,   // others wait in a call that the ranks did not make
  kCameLate,       // they made it when the others had given up
  kTearDown,       // the same, as they are tearing the group down
  kLeft,           // the same, as they have left the group
  kExtraCall,      // they made a call when all the others had left
  kLink,           // all made the call, but data did not get through
  kNoDump,         // others wait, and these ranks have left nothing to read
  kCrossedGroups,  // ranks wait for each other in different groups
  kReported,       // what a rank reported; the records do not say more
};
// "mismatch", "process_ended", ...
std::string_view FindingKindName(FindingKind kind);

struct Finding {
  FindingKind kind = FindingKind::kNone;
  std::string group;
  uint64_t sequence = 0;         // of the call; 0: none
  std::vector<int> ranks;        // of the group, whom it is about
  std::vector<int> world_ranks;  // the same, as far as known
  std::string text;              // one line
  double since_s = 0;            // time of day in seconds: when the first rank failed or waited
};

struct Diagnosis {
  Finding verdict;              // kNone when all is well
  std::vector<Finding> others;  // of other groups, mostly consequences
};

Diagnosis Diagnose(const RunView& run);

// Of one group alone; kNone when nothing is wrong in it.
Finding DiagnoseGroup(const GroupView& group);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_DOCTOR_DIAGNOSE_H_
