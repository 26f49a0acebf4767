// Open MPI as the one to compare with: the same operations on the same ranks.
#ifndef PLINTH_COMM_BENCH_PEERS_MPI_MPI_PEER_H_
#define PLINTH_COMM_BENCH_PEERS_MPI_MPI_PEER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "plinth/comm/bench/cases/bench_op.h"
#include "plinth/comm/bench/peers/peer.h"
#include "plinth/comm/reduce/reduce.h"
#include "plinth/comm/transport/mpi/library.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {

// How MPI is to be used.
struct MpiUse {
  // Data between ranks by TCP, on one host over loopback, instead of the fastest path. Set by
  // Open MPI's own variables (OMPI_MCA_...), of which those that the user has set are kept.
  bool tcp = false;
  bool one_host = true;
  // By any thread, as our transport over MPI wants it, instead of one as most programs do.
  bool any_thread = false;
};

// MPI has no threads that work between calls, so it costs nothing while something else is timed.
class MpiPeer final : public Peer {
 public:
  // Loads and starts MPI in this process, which mpirun has started. Errors: LoadMpi's;
  // kFailedPrecondition when MPI does not see the ranks that mpirun announced, or has loaded
  // other ways to move data though TCP was asked for.
  static absl::StatusOr<std::unique_ptr<MpiPeer>> Start(const MpiUse& use);
  // Ends MPI; mpirun takes a process that did not for a crash.
  ~MpiPeer() override;

  std::string title() const override { return "Open MPI"; }
  std::string version() const override;  // "Open MPI v4.1.4 over tcp"
  absl::StatusOr<std::byte*> Memory(int64_t bytes) override { return nullptr; }
  bool Supports(const Shape& shape, bool in_place) const override;
  absl::StatusOr<double> Run(const Shape& shape, const CallBuffers& buffers, int calls) override;

 private:
  MpiPeer(MpiLibrary mpi, bool tcp) : mpi_(std::move(mpi)), tcp_(tcp) {}
  MpiDatatype TypeOf(DType dtype) const;  // null: MPI has none
  MpiOp OpOf(ReduceOp op) const;          // null: MPI has none
  int Call(const Shape& shape, const CallBuffers& buffers) const;

  const MpiLibrary mpi_;
  const bool tcp_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_PEERS_MPI_MPI_PEER_H_
