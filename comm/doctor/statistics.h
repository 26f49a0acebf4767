// Who comes late and how long the others wait for it, over the calls that all ranks completed.
#ifndef PLINTH_COMM_DOCTOR_STATISTICS_H_
#define PLINTH_COMM_DOCTOR_STATISTICS_H_

#include <cstdint>
#include <vector>

#include "plinth/comm/doctor/run_view.h"

namespace plinth::comm {

struct RankStatistics {
  int rank = 0;                  // of the group
  int64_t times_last = 0;        // calls that it entered last
  int64_t waited_for_ns = 0;     // in these: from the last but one rank's coming to its own
  int64_t median_late_ns = 0;    // after the first rank
  int64_t median_moving_ns = 0;  // from the meeting of all to the end of the call
};

struct GroupStatistics {
  int64_t calls = 0;                  // counted: every rank's record is there and complete
  std::vector<RankStatistics> ranks;  // the one waited for longest first
};

GroupStatistics MeasureGroup(const GroupView& group);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_DOCTOR_STATISTICS_H_
