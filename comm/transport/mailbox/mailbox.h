// A transport over memory that all ranks see: the core of mem and shm.
//
// For every ordered pair of ranks there is a ring of bytes with one writer and one reader: a
// sender copies in, a receiver copies out. Announces go through slots that all ranks read,
// greetings through the rings; who waits for either also looks where the other would be.
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
  std::optional<PeerFailure> Greet(std::span<Greeting> greetings, absl::Time deadline) override;
  std::optional<PeerFailure> FindFailure() override { return waiter_.FindFailure(); }
  void Abort(std::string_view reason) override;
  SharedSpace* shared() override { return &space_; }

 private:
  // Until all parts are through or `stop` holds; `step` moves what can be moved now.
  template <typename MoveSome, typename Stop>
  std::optional<PeerFailure> Drive(const MoveSome& step, const Stop& stop, absl::Time deadline);
  // Moves what can be moved now; true when anything was.
  bool Step();
  bool HasPosted(int rank, uint32_t sequence) const {
    return view_.note(rank, sequence).sequence.load(std::memory_order_acquire) == sequence;
  }
  std::span<const std::byte> NoteOf(int rank, uint32_t sequence) const;
  // A rank from `first` on that greets this one instead of posting note `sequence`; else -1.
  int FindGreeter(int first, uint32_t sequence) const;
  PeerFailure ReadGreeter(int rank);
  // Index of a greeting without answer whose peer has posted a note instead; else -1.
  int FindAnnounced(std::span<const Greeting> greetings) const;
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
  // Of the last Greet; kept for their memory.
  std::vector<std::byte> greet_frames_;  // own, then theirs, by greeting
  std::vector<SendPart> greet_sends_;
  std::vector<ReceivePart> greet_receives_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_MAILBOX_MAILBOX_H_
