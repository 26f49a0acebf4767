// The benchmark's calls, made of a Communicator.
#ifndef PLINTH_COMM_BENCH_CASES_OUR_CALLS_H_
#define PLINTH_COMM_BENCH_CASES_OUR_CALLS_H_

#include "absl/status/status.h"
#include "plinth/comm/bench/cases/bench_op.h"
#include "plinth/comm/collective/communicator.h"

namespace plinth::comm {

// Makes the call that `shape` describes. Errors: the communicator's.
absl::Status RunOurs(Communicator& comm, const Shape& shape, const CallBuffers& buffers);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_CASES_OUR_CALLS_H_
