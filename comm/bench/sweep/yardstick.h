// What shared memory gives for an all_reduce without waiting and copying: the yardstick for ours.
#ifndef PLINTH_COMM_BENCH_SWEEP_YARDSTICK_H_
#define PLINTH_COMM_BENCH_SWEEP_YARDSTICK_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plinth/comm/bench/cases/bench_op.h"
#include "plinth/comm/collective/communicator.h"
#include "plinth/comm/rendezvous/options.h"
#include "plinth/comm/store/store.h"
#include "plinth/comm/transport/shared_space.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

// Over a space of its own, as the ranks of the group that is measured have it.
class Yardstick {
 public:
  // Called by every rank, all on one host; for vectors of up to `most_bytes`.
  static absl::StatusOr<std::unique_ptr<Yardstick>> Create(CommOptions options, Store& store,
                                                           int64_t most_bytes);

  // Bus bandwidth in GB/s of an all_reduce of so many bytes at this moment, of the slowest rank and
  // of the faster of two ways to write: through the caches or past them. Called by every rank of
  // `comm`; takes about `length`.
  absl::StatusOr<double> BusBandwidth(Communicator& comm, const Shape& shape,
                                      absl::Duration length);

 private:
  explicit Yardstick(std::unique_ptr<Transport> transport, absl::Duration timeout)
      : transport_(std::move(transport)), timeout_(timeout) {}

  const std::unique_ptr<Transport> transport_;
  const absl::Duration timeout_;
  SharedMemory memory_;  // ends before the transport
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_SWEEP_YARDSTICK_H_
