#include "plinth/comm/transport/mailbox/waiter.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>
#include <string>
#include <utility>

#include "absl/time/clock.h"

namespace plinth::comm {
namespace {

constexpr absl::Duration kSleepSlice = absl::Milliseconds(20);

// Values of RankCell::sleeps_for.
constexpr uint32_t kAwake = 0;
constexpr uint32_t kForAnyone = 1;
constexpr uint32_t ForRank(int rank) { return static_cast<uint32_t>(rank) + 2; }

// About 10 us, unless the ranks share cores: then the awaited one needs this core.
constexpr int kLooks = 400;

int CoresOfThisProcess() {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

// Not FUTEX_PRIVATE: the word may be shared between processes.
long Futex(std::atomic<uint32_t>* word, int op, uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), op, value, timeout, nullptr, 0);
}

}  // namespace

Waiter::Waiter(int rank, MailboxView view, AliveCheck alive)
    : rank_(rank),
      view_(view),
      alive_(std::move(alive)),
      looks_(view.size() <= CoresOfThisProcess() ? kLooks : 0) {}

int64_t Waiter::MonotonicNanos() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::optional<PeerFailure> Waiter::AwaitAsleep(const std::function<bool()>& ready,
                                               const std::function<std::vector<int>()>& guilty,
                                               WakenBy waken_by, absl::Time deadline) const {
  absl::Time next_alive_check = absl::Now() + kSleepSlice;
  while (true) {
    if (ready()) return std::nullopt;
    if (std::optional<PeerFailure> abort = FindAbort()) return abort;
    const absl::Time now = absl::Now();
    const std::vector<int> ranks = guilty();
    if (ranks.empty()) continue;  // they came just now
    const bool ask_alive = now >= next_alive_check;
    if (ask_alive) next_alive_check = now + kSleepSlice;
    if (std::optional<PeerFailure> ended = FindEnded(ranks, ask_alive)) {
      // What it had published before it ended may still be enough.
      if (ready()) return std::nullopt;
      return ended;
    }
    if (now >= deadline) return PeerFailure{PeerFailure::Kind::kLate, ranks, ""};
    const uint32_t whom = waken_by == WakenBy::kAnyone ? kForAnyone : ForRank(ranks.front());
    if (Sleep(ready, whom)) return std::nullopt;
  }
}

std::optional<PeerFailure> Waiter::FindFailure() const {
  if (std::optional<PeerFailure> abort = FindAbort()) return abort;
  std::vector<int> peers;
  for (int peer = 0; peer < view_.size(); ++peer) {
    if (peer != rank_) peers.push_back(peer);
  }
  return FindEnded(peers, /*ask_alive=*/true);
}

std::optional<PeerFailure> Waiter::FindAbort() const {
  for (int peer = 0; peer < view_.size(); ++peer) {
    const RankCell& cell = view_.cell(peer);
    if (cell.state.load() != RankState::kAborted) continue;
    const size_t bytes = std::min<size_t>(cell.reason_bytes, kMaxAbortReasonBytes);
    return PeerFailure{PeerFailure::Kind::kAborted, {peer}, std::string(cell.reason, bytes)};
  }
  return std::nullopt;
}

std::optional<PeerFailure> Waiter::FindEnded(const std::vector<int>& guilty, bool ask_alive) const {
  PeerFailure left{PeerFailure::Kind::kLeft, {}, ""};
  PeerFailure gone{PeerFailure::Kind::kGone, {}, ""};
  for (const int peer : guilty) {
    if (view_.cell(peer).state.load() == RankState::kLeft) {
      left.ranks.push_back(peer);
    } else if (ask_alive && !alive_(peer)) {
      gone.ranks.push_back(peer);
    }
  }
  if (!gone.ranks.empty()) return gone;
  if (!left.ranks.empty()) return left;
  return std::nullopt;
}

// Sequentially consistent on both sides, with the fence of the wakers: either `ready` sees here
// what a waker had published, or the waker sees that this rank sleeps.
bool Waiter::Sleep(const std::function<bool()>& ready, uint32_t whom) const {
  std::atomic<uint32_t>& word = view_.cell(rank_).sleeps_for;
  const timespec slice = absl::ToTimespec(kSleepSlice);
  view_.group().sleepers.fetch_add(1);
  word.store(whom);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const bool is_ready = ready();
  const bool aborted = !is_ready && FindAbort().has_value();
  if (!is_ready && !aborted) Futex(&word, FUTEX_WAIT, whom, &slice);
  word.store(kAwake);
  view_.group().sleepers.fetch_sub(1);
  return is_ready;
}

void Waiter::WakeAll() const {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (int peer = 0; peer < view_.size(); ++peer) WakeIf(peer, true);
}

void Waiter::WakeIf(int peer, bool anyhow) const {
  std::atomic<uint32_t>& word = view_.cell(peer).sleeps_for;
  uint32_t whom = word.load();
  if (whom == kAwake || !(anyhow || whom == kForAnyone || whom == ForRank(rank_))) return;
  // Only one of several wakers makes the call.
  if (word.compare_exchange_strong(whom, kAwake)) Futex(&word, FUTEX_WAKE, INT_MAX, nullptr);
}

}  // namespace plinth::comm
