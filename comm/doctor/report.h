// A diagnosis as text for people and as JSON for programs.
#ifndef PLINTH_COMM_DOCTOR_REPORT_H_
#define PLINTH_COMM_DOCTOR_REPORT_H_

#include <string>

#include "plinth/comm/doctor/diagnose.h"
#include "plinth/comm/doctor/run_view.h"

namespace plinth::comm {

// The verdict in the first line, then for each group where every rank is, its last `calls` calls
// and who was waited for; then what is missing. Lines of at most about 110 characters.
std::string TextReport(const RunView& run, const Diagnosis& diagnosis, int calls);

// One line with one object:
// {"verdict":{...},"others":[...],"run":...,"groups":[...],"notes":[...]}. Bytes of dumps and paths
// that are not UTF-8 appear as U+FFFD.
std::string JsonReport(const RunView& run, const Diagnosis& diagnosis);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_DOCTOR_REPORT_H_
