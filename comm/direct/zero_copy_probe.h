// The yardstick of collectives over shared memory: their memory traffic and nothing else.
#ifndef PLINTH_COMM_DIRECT_ZERO_COPY_PROBE_H_
#define PLINTH_COMM_DIRECT_ZERO_COPY_PROBE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plinth/comm/direct/stream.h"
#include "plinth/comm/transport/shared_space.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

// What an all-reduce of f32 over registered memory cannot be faster than: each rank sums its share
// of `bytes` from the memory of all ranks into the memory of all ranks, `repeats` times, and
// waits for nobody but before the first. `store` says how it writes. Returns this rank's time for
// one; the slowest rank's is what to compare with. Called by every rank; `memory`, of one
// allocation of all ranks, holds at least `bytes`, which end up as anything. kUnavailable names
// ranks that did not come.
absl::StatusOr<absl::Duration> ProbeAllReduce(Transport& transport, const SharedMemory& memory,
                                              int64_t bytes, int repeats, StoreTo store,
                                              absl::Time deadline);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_DIRECT_ZERO_COPY_PROBE_H_
