// Another library on the same ranks, to compare with in turns.
#ifndef PLINTH_COMM_BENCH_PEERS_PEER_H_
#define PLINTH_COMM_BENCH_PEERS_PEER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "plinth/comm/bench/cases/bench_op.h"

namespace plinth::comm {

// One rank's end of it; every rank has one and asks the same of it in the same order. Used by one
// thread. Costs no CPU while something else is timed.
class Peer {
 public:
  virtual ~Peer() = default;

  virtual std::string title() const = 0;    // above its columns: "Open MPI"
  virtual std::string version() const = 0;  // with the path that data takes
  // Microseconds of each call that a binding costs it, as measured where there is nobody to wait
  // for; they are part of its times. 0 for a library that is called directly.
  virtual double binding_us() const { return 0; }

  // At least `bytes`, aligned to a page, that Run may be given buffers in, until the next call.
  // Null: it takes any memory of this process.
  virtual absl::StatusOr<std::byte*> Memory(int64_t bytes) = 0;

  // Whether it has the operation for this type, reduction, count and placement, with results
  // where ours are.
  virtual bool Supports(const Shape& shape, bool in_place) const = 0;
  // Waits for all ranks in its own barrier, then makes `calls` calls in a row. Returns this rank's
  // seconds for these, without the barrier. REQUIRES: Supports.
  virtual absl::StatusOr<double> Run(const Shape& shape, const CallBuffers& buffers, int calls) = 0;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_PEERS_PEER_H_
