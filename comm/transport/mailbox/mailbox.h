// A transport over memory that all ranks see: the core of mem and shm.
//
// For every ordered pair of ranks there is a ring of bytes with one writer and one reader: a
// sender copies in, a receiver copies out. Announces go through slots that all ranks read.
#ifndef PLINTH_COMM_TRANSPORT_MAILBOX_MAILBOX_H_
#define PLINTH_COMM_TRANSPORT_MAILBOX_MAILBOX_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plinth/comm/transport/mailbox/layout.h"
#include "plinth/comm/transport/mailbox/regions.h"
#include "plinth/comm/transport/mailbox/space.h"
#include "plinth/comm/transport/mailbox/waiter.h"
#include "plinth/comm/transport/progress.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

class MailboxTransport final : public Transport {
 public:
  // `block` keeps the memory under `view` alive; `regions` is where registered memory comes from.
  MailboxTransport(std::string name, int rank, MailboxView view, std::shared_ptr<void> block,
                   Waiter::AliveCheck alive, std::unique_ptr<Regions> regions);
  ~MailboxTransport() override;

  int rank() const override { return rank_; }
  int size() const override { return view_.size(); }
  std::string_view name() const override { return name_; }
  std::optional<PeerFailure> Exchange(std::span<const SendPart> sends,
                                      std::span<const ReceivePart> receives,
                                      absl::Time deadline) override;
  std::optional<PeerFailure> Announce(std::span<const std::byte> note,
                                      std::vector<std::span<const std::byte>>& notes,
                                      absl::Time deadline) override;
  std::optional<PeerFailure> FindFailure() override { return waiter_.FindFailure(); }
  void Abort(std::string_view reason) override;
  SharedSpace* shared() override { return &space_; }

 private:
  // Moves what can be moved now; true when anything was.
  bool Step();
  int64_t Push(const SendPart& part, int64_t done);
  int64_t Pull(const ReceivePart& part, int64_t done);
  // Wakes the peers that have something to do after the last steps.
  void WakeMoved();

  const std::string name_;
  const int rank_;
  const std::shared_ptr<void> block_;
  const MailboxView view_;
  const Waiter waiter_;
  MailboxSpace space_;
  ExchangeProgress progress_;
  std::vector<char> moved_;  // by peer: bytes went to or from it since WakeMoved
  int64_t bytes_unwoken_ = 0;
  uint32_t announces_ = 0;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_MAILBOX_MAILBOX_H_
