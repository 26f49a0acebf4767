// Ranks that did not call the same, and how findings speak of calls.
#ifndef PLINTH_COMM_DOCTOR_MISMATCH_H_
#define PLINTH_COMM_DOCTOR_MISMATCH_H_

#include <optional>
#include <string>

#include "plinth/comm/doctor/diagnose.h"
#include "plinth/comm/doctor/run_view.h"
#include "plinth/comm/recorder/dump.h"

namespace plinth::comm {

// Ranks that called differently from most, at the first call where any did.
std::optional<Finding> FindMismatch(const GroupView& group);

// " at trainer.cc:120"; empty when it is not known.
std::string SiteOf(const RecordedCall& call);
// "all_reduce #812 of group dp (f32 x 1024)".
std::string CallOf(const GroupView& group, const RecordedCall& call);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_DOCTOR_MISMATCH_H_
