// How a rank of a mem or shm group waits for others, and how it wakes them.
//
// A wait looks, then gives the core away between looks, then sleeps (futex): a peer on another
// core answers during the first, one that needs this very core during the second, and one that
// is at other work gets the core for itself in the third. Sleep is cut into slices, between
// which it is seen whether the group was aborted and the peers still live.
#ifndef PLINTH_COMM_TRANSPORT_MAILBOX_WAITER_H_
#define PLINTH_COMM_TRANSPORT_MAILBOX_WAITER_H_

#include <sched.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "plinth/comm/transport/mailbox/layout.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

class Waiter {
 public:
  // False when the peer's process has ended. Asked a few times a second while waiting.
  using AliveCheck = std::function<bool(int peer)>;
  // What ends a sleep: a step of the first guilty rank, or of any rank at all.
  enum class WakenBy { kFirstGuilty, kAnyone };

  Waiter(int rank, MailboxView view, AliveCheck alive);

  // A few looks in a row, for what is true already or just becoming so.
  template <typename Ready>
  bool Glance(const Ready& ready) const {
    for (int look = 0; look < kGlances; ++look) {
      if (ready()) return true;
    }
    return false;
  }

  // Returns when ready() is true, or why it cannot become so. `ready` may have effects when true;
  // guilty() gives the ranks it waits for, ascending. Who makes it true wakes the sleepers.
  template <typename Ready, typename Guilty>
  std::optional<PeerFailure> Await(const Ready& ready, const Guilty& guilty, WakenBy waken_by,
                                   absl::Time deadline) const {
    for (int look = 0; look < looks_; ++look) {
      if (ready()) return std::nullopt;
      Relax();
    }
    const int64_t until = MonotonicNanos() + kYieldNanos;
    do {
      if (ready()) return std::nullopt;
      sched_yield();
    } while (MonotonicNanos() < until);
    return AwaitAsleep(std::ref(ready), std::ref(guilty), waken_by, deadline);
  }

  // Wakes those that sleep for this rank. Callers publish what the sleepers shall see beforehand.
  void WakeSleepers() const {
    if (!AnyoneSleeps()) return;
    for (int peer = 0; peer < view_.size(); ++peer) WakeSleeper(peer);
  }
  // Whether someone may be asleep who has not seen what this rank published before. Waits until
  // that has left this core.
  bool AnyoneSleeps() const {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return view_.group().sleepers.load() != 0;
  }
  // Wakes `peer` if it sleeps for this rank; after AnyoneSleeps.
  void WakeSleeper(int peer) const { WakeIf(peer, false); }
  // Wakes everyone, whatever for.
  void WakeAll() const;
  // Some rank that has aborted the group.
  std::optional<PeerFailure> FindAbort() const;

  // An abort or a rank that has ended, as far as is known without waiting.
  std::optional<PeerFailure> FindFailure() const;

 private:
  static constexpr int kGlances = 32;
  static constexpr int64_t kYieldNanos = 50'000;

  static void Relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  static int64_t MonotonicNanos();

  std::optional<PeerFailure> AwaitAsleep(const std::function<bool()>& ready,
                                         const std::function<std::vector<int>()>& guilty,
                                         WakenBy waken_by, absl::Time deadline) const;
  // Peers among `guilty` that have ended, if any.
  std::optional<PeerFailure> FindEnded(const std::vector<int>& guilty, bool ask_alive) const;
  // Until woken, but no longer than a slice. Returns at once when `ready`, which had its effect.
  bool Sleep(const std::function<bool()>& ready, uint32_t whom) const;
  void WakeIf(int peer, bool anyhow) const;

  const int rank_;
  const MailboxView view_;
  const AliveCheck alive_;
  const int looks_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_MAILBOX_WAITER_H_
