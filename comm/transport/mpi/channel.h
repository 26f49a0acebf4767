// The mpi transport over a communicator of MPI that stands already.
#ifndef PLINTH_COMM_TRANSPORT_MPI_CHANNEL_H_
#define PLINTH_COMM_TRANSPORT_MPI_CHANNEL_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plinth/comm/transport/mpi/library.h"
#include "plinth/comm/transport/progress.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

// Data travels with one tag and at most one word from each rank, that it aborts or has left, with
// another. A receive is begun only once its message is there, so that a receive that never comes
// true leaves nothing behind in MPI.
//
// MPI tells nothing about ranks that died: mpirun ends the whole job instead. Should a call of MPI
// fail, its peer counts as gone.
class MpiTransport final : public Transport {
 public:
  // `comm` belongs to this group alone; it stays until MPI ends, as does a transfer that has begun
  // when an exchange fails.
  MpiTransport(const MpiLibrary& mpi, MpiComm comm, int rank, int size);
  ~MpiTransport() override;

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  std::string_view name() const override { return "mpi"; }
  std::optional<PeerFailure> Exchange(std::span<const SendPart> sends,
                                      std::span<const ReceivePart> receives,
                                      absl::Time deadline) override;
  std::optional<PeerFailure> FindFailure() override;
  void Abort(std::string_view reason) override;

 private:
  // A transfer of MPI that goes on.
  struct Transfer {
    MpiRequest request = nullptr;
    int64_t bytes = 0;  // 0: there is none
  };
  struct Peer {
    Transfer sending;
    Transfer receiving;
    bool into_surplus = false;  // where `receiving` goes
    // What a message held beyond the part it was received for.
    std::vector<std::byte> surplus;
    size_t surplus_begin = 0;
    bool left = false;
    std::optional<std::string> abort_reason;
  };

  bool Step();
  int64_t SendSome(const SendPart& part, int64_t done);
  int64_t ReceiveSome(const ReceivePart& part, int64_t done);
  int64_t TakeSurplus(Peer& peer, const ReceivePart& part, int64_t done);
  // Begins to receive the next message of the part's peer, if it is there.
  bool BeginReceive(Peer& peer, const ReceivePart& part, int64_t done);
  // Bytes of a transfer that ended just now; else 0.
  int64_t Finish(int rank, Transfer& transfer);
  void ReadControl();
  std::optional<PeerFailure> FindAbort() const;
  // Those of `peers` that have left.
  std::optional<PeerFailure> FindLeft(std::span<const int> peers) const;
  void Tell(char kind, std::string_view text);
  // Notes the first call of MPI that failed; true when this one did not.
  bool Check(int rank, int code, const char* what);
  PeerFailure Fail(PeerFailure failure);

  const MpiLibrary mpi_;
  const MpiComm comm_;
  const int rank_;
  std::vector<Peer> peers_;
  ExchangeProgress progress_;
  std::optional<PeerFailure> broken_;  // a call of MPI failed

  std::atomic<bool> told_ = false;  // the one word is out
  // Null until then; used by MPI until told_transfers_ are through.
  std::unique_ptr<std::string> told_text_;
  std::vector<Transfer> told_transfers_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_MPI_CHANNEL_H_
