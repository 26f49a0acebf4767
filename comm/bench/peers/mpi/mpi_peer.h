// Open MPI as the one to compare with: the same operations on the same ranks.
#ifndef PLINTH_COMM_BENCH_PEERS_MPI_MPI_PEER_H_
#define PLINTH_COMM_BENCH_PEERS_MPI_MPI_PEER_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/comm/bench/cases/bench_op.h"
#include "plinth/comm/reduce/reduce.h"
#include "plinth/comm/rendezvous/options.h"
#include "plinth/comm/transport/mpi/library.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {

// Used by one thread. MPI has no threads that work between calls, so it costs nothing while
// something else is timed.
class MpiPeer {
 public:
  // Loads and starts MPI, for one thread as most programs do, in this process, which mpirun has
  // started. Errors: LoadMpi's;
  // kFailedPrecondition when MPI does not see the ranks that mpirun announced.
  static absl::StatusOr<std::unique_ptr<MpiPeer>> Start();
  // Ends MPI; mpirun takes a process that did not for a crash.
  ~MpiPeer();

  // Where this rank stands, with a store's port that rank 0 chose and MPI brought to all.
  absl::StatusOr<CommOptions> Options();
  std::string version() const;  // "Open MPI v4.1.4"

  // Whether MPI has the operation for this type, reduction, count and placement, with results
  // where ours are.
  bool Supports(const Shape& shape, bool in_place) const;
  // REQUIRES: Supports.
  absl::Status Run(const Shape& shape, const CallBuffers& buffers);

 private:
  explicit MpiPeer(MpiLibrary mpi) : mpi_(std::move(mpi)) {}
  MpiDatatype TypeOf(DType dtype) const;  // null: MPI has none
  MpiOp OpOf(ReduceOp op) const;          // null: MPI has none
  int Call(const Shape& shape, const CallBuffers& buffers) const;

  const MpiLibrary mpi_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_PEERS_MPI_MPI_PEER_H_
