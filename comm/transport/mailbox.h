// A transport over memory that all ranks see: the core of mem and shm.
//
// One block holds a cell per rank and, for every ordered pair of ranks, a ring of bytes with one
// writer and one reader. A sender copies into the ring and rings the receiver's bell; a receiver
// copies out and rings the sender's. A rank with nothing to move spins briefly, then sleeps on
// its bell (futex) in slices, between which it looks whether the peers it waits for still live.
//
//   | RankCell x size | RingEnds x size*size | ring bytes x size*(size-1) |
#ifndef PLINTH_COMM_TRANSPORT_MAILBOX_H_
#define PLINTH_COMM_TRANSPORT_MAILBOX_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plinth/comm/transport/progress.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

enum class RankState : uint32_t { kPresent = 0, kLeft, kAborting, kAborted };

struct alignas(64) RankCell {
  std::atomic<uint32_t> bell;      // changes whenever the rank may be able to go on
  std::atomic<uint32_t> sleeping;  // not 0 while it may be waiting in the kernel
  std::atomic<RankState> state;
  // Who the rank is; 0 until it has joined. Used by shm.
  std::atomic<int64_t> process_start;
  std::atomic<int64_t> process_id;
  // Valid once state is kAborted.
  uint32_t reason_bytes;
  char reason[kMaxAbortReasonBytes];
};

// Bytes so far; the ring holds written - read of them.
struct RingEnds {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free, "shared between processes");

// Where things are in the block. A view; the block outlives it.
class MailboxView {
 public:
  // A power of two: as large as helps, with all rings together within 32 MiB if possible.
  static int64_t DefaultRingBytes(int size);
  static int64_t TotalBytes(int size, int64_t ring_bytes);

  // `block` is aligned to 64 and has TotalBytes; `ring_bytes` is a power of two.
  MailboxView(std::byte* block, int size, int64_t ring_bytes);
  // Makes a fresh block ready. Called once, before any rank uses it.
  void Format();

  int size() const { return size_; }
  int64_t ring_bytes() const { return ring_bytes_; }
  RankCell& cell(int rank) const { return cells_[rank]; }
  RingEnds& ends(int from, int to) const { return ends_[from * size_ + to]; }
  std::byte* ring(int from, int to) const {
    return rings_ + (from * (size_ - 1) + (to < from ? to : to - 1)) * ring_bytes_;
  }
  // Lets `rank` look again. Callers publish what it shall see beforehand.
  void RingBell(int rank) const;

 private:
  int size_;
  int64_t ring_bytes_;
  RankCell* cells_;
  RingEnds* ends_;
  std::byte* rings_;
};

class MailboxTransport final : public Transport {
 public:
  // False when the peer's process has ended. Asked a few times a second while waiting.
  using AliveCheck = std::function<bool(int peer)>;

  // `block` keeps the memory under `view` alive.
  MailboxTransport(std::string name, int rank, MailboxView view, std::shared_ptr<void> block,
                   AliveCheck alive);
  ~MailboxTransport() override;

  int rank() const override { return rank_; }
  int size() const override { return view_.size(); }
  std::string_view name() const override { return name_; }
  std::optional<PeerFailure> Exchange(std::span<const SendPart> sends,
                                      std::span<const ReceivePart> receives,
                                      absl::Time deadline) override;
  void Abort(std::string_view reason) override;

 private:
  // Moves what can be moved now; true when anything was.
  bool Step();
  int64_t Push(const SendPart& part, int64_t done);
  int64_t Pull(const ReceivePart& part, int64_t done);
  std::optional<PeerFailure> FindAbort() const;
  // Peers among `guilty` that have ended, if any.
  std::optional<PeerFailure> FindEnded(const std::vector<int>& guilty, bool ask_alive) const;
  void Sleep(uint32_t seen_bell);
  void WakeAll();

  const std::string name_;
  const int rank_;
  const std::shared_ptr<void> block_;
  const MailboxView view_;
  const AliveCheck alive_;
  ExchangeProgress progress_;
  int spins_;  // looks before sleeping; 0 for ever when it starts so
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_MAILBOX_H_
