// What the ranks of a launch tell each other once, when all of them are connected.
#ifndef PLINTH_COMM_COLLECTIVE_INTRODUCTION_H_
#define PLINTH_COMM_COLLECTIVE_INTRODUCTION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plinth/comm/rendezvous/options.h"
#include "plinth/comm/transport/transport.h"
#include "plinth/comm/tuner/table_set.h"

namespace plinth::comm {

// Called by every rank; returns GroupInfo::hosts. A rank that does not come is named as at a
// barrier, in one line that the finder's abort carries to the others. kFailedPrecondition, the same
// line on every rank, when they were not given one choice of algorithms, or not the same tables to
// choose by: they would wait for each other's messages.
absl::StatusOr<std::vector<uint64_t>> Introduce(const CommOptions& options, const TableSet& tables,
                                                Transport& transport, absl::Time deadline);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_COLLECTIVE_INTRODUCTION_H_
