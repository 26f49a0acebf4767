#include "plinth/comm/transport/mailbox.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <cstring>
#include <ctime>
#include <new>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "plinth/hardware/base/check.h"

namespace plinth::comm {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kMostRingBytes = int64_t{512} << 10;
constexpr int64_t kLeastRingBytes = int64_t{4} << 10;
constexpr int64_t kRingBudget = int64_t{32} << 20;
// Published at once, so that the reader of a long message starts while it is being written.
constexpr int64_t kPublishBytes = int64_t{64} << 10;
// Looks before sleeping, about 0.1 us each: as many as paid off lately. A peer on another core
// answers within a few; one that waits for this very core, or comes much later, never does.
constexpr int kLeastSpins = 32;
constexpr int kMostSpins = 1024;
constexpr absl::Duration kSleepSlice = absl::Milliseconds(20);

int64_t CellBytes(int size) { return static_cast<int64_t>(sizeof(RankCell)) * size; }
int64_t EndsBytes(int size) { return static_cast<int64_t>(sizeof(RingEnds)) * size * size; }

void RelaxCpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Not FUTEX_PRIVATE: the word may be shared between processes.
long Futex(std::atomic<uint32_t>* word, int op, uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), op, value, timeout, nullptr, 0);
}

// Spinning with more ranks than cores keeps the awaited rank from running.
bool SpinsAtAll(int size) {
  return static_cast<unsigned>(size) <= std::thread::hardware_concurrency();
}

}  // namespace

int64_t MailboxView::DefaultRingBytes(int size) {
  const int64_t pairs = std::max<int64_t>(1, static_cast<int64_t>(size) * (size - 1));
  const int64_t fair = static_cast<int64_t>(std::bit_floor(uint64_t(kRingBudget / pairs)));
  return std::clamp(fair, kLeastRingBytes, kMostRingBytes);
}

int64_t MailboxView::TotalBytes(int size, int64_t ring_bytes) {
  return CellBytes(size) + EndsBytes(size) + ring_bytes * size * (size - 1);
}

MailboxView::MailboxView(std::byte* block, int size, int64_t ring_bytes)
    : size_(size),
      ring_bytes_(ring_bytes),
      cells_(reinterpret_cast<RankCell*>(block)),
      ends_(reinterpret_cast<RingEnds*>(block + CellBytes(size))),
      rings_(block + CellBytes(size) + EndsBytes(size)) {
  CHECK_EQ(reinterpret_cast<uintptr_t>(block) % kAlignment, 0u);
  CHECK(std::has_single_bit(static_cast<uint64_t>(ring_bytes))) << ring_bytes;
}

void MailboxView::Format() {
  for (int rank = 0; rank < size_; ++rank) new (&cells_[rank]) RankCell{};
  for (int pair = 0; pair < size_ * size_; ++pair) new (&ends_[pair]) RingEnds{};
}

// Sequentially consistent on both sides: either the bell is seen to have changed before the
// rank sleeps, or its `sleeping` is seen here.
void MailboxView::RingBell(int rank) const {
  RankCell& target = cell(rank);
  target.bell.fetch_add(1);
  if (target.sleeping.load() != 0) Futex(&target.bell, FUTEX_WAKE, INT_MAX, nullptr);
}

MailboxTransport::MailboxTransport(std::string name, int rank, MailboxView view,
                                   std::shared_ptr<void> block, AliveCheck alive)
    : name_(std::move(name)),
      rank_(rank),
      block_(std::move(block)),
      view_(view),
      alive_(std::move(alive)),
      progress_(view.size()),
      spins_(SpinsAtAll(view.size()) ? kLeastSpins : 0) {}

MailboxTransport::~MailboxTransport() {
  RankState present = RankState::kPresent;
  if (view_.cell(rank_).state.compare_exchange_strong(present, RankState::kLeft)) WakeAll();
}

void MailboxTransport::Abort(std::string_view reason) {
  RankCell& own = view_.cell(rank_);
  RankState present = RankState::kPresent;
  if (!own.state.compare_exchange_strong(present, RankState::kAborting)) return;
  own.reason_bytes = static_cast<uint32_t>(std::min(reason.size(), kMaxAbortReasonBytes));
  std::memcpy(own.reason, reason.data(), own.reason_bytes);
  own.state.store(RankState::kAborted);
  WakeAll();
}

void MailboxTransport::WakeAll() {
  for (int peer = 0; peer < size(); ++peer) view_.RingBell(peer);
}

std::optional<PeerFailure> MailboxTransport::Exchange(std::span<const SendPart> sends,
                                                      std::span<const ReceivePart> receives,
                                                      absl::Time deadline) {
  progress_.Start(sends, receives);
  int idle = 0;
  absl::Time next_alive_check = absl::Now() + kSleepSlice;
  while (true) {
    const uint32_t seen_bell = view_.cell(rank_).bell.load();
    if (Step()) {
      if (idle > 0 && idle <= spins_) spins_ = std::min(2 * spins_, kMostSpins);
      idle = 0;
      continue;
    }
    if (progress_.AllDone()) return std::nullopt;
    if (idle++ < spins_) {
      RelaxCpu();
      continue;
    }
    if (std::optional<PeerFailure> abort = FindAbort()) return abort;
    const absl::Time now = absl::Now();
    const std::vector<int> guilty = progress_.Guilty();
    const bool ask_alive = now >= next_alive_check;
    if (ask_alive) next_alive_check = now + kSleepSlice;
    if (std::optional<PeerFailure> ended = FindEnded(guilty, ask_alive)) {
      // What it had published before it ended may still complete the exchange.
      if (Step()) continue;
      return ended;
    }
    if (now >= deadline) return PeerFailure{PeerFailure::Kind::kLate, guilty, ""};
    if (idle == spins_ + 1) spins_ = std::max(spins_ / 2, std::min(spins_, kLeastSpins));
    Sleep(seen_bell);
  }
}

bool MailboxTransport::Step() {
  return progress_.Step([this](const SendPart& part, int64_t done) { return Push(part, done); },
                        [this](const ReceivePart& part, int64_t done) { return Pull(part, done); });
}

int64_t MailboxTransport::Push(const SendPart& part, int64_t done) {
  RingEnds& ends = view_.ends(rank_, part.peer);
  const uint64_t written = ends.written.load(std::memory_order_relaxed);
  const int64_t held = static_cast<int64_t>(written - ends.read.load(std::memory_order_acquire));
  const int64_t bytes = std::min({part.bytes - done, view_.ring_bytes() - held, kPublishBytes});
  if (bytes == 0) return 0;
  const auto* from = static_cast<const std::byte*>(part.data) + done;
  std::byte* ring = view_.ring(rank_, part.peer);
  const int64_t at = static_cast<int64_t>(written) & (view_.ring_bytes() - 1);
  const int64_t straight = std::min(bytes, view_.ring_bytes() - at);
  std::memcpy(ring + at, from, straight);
  std::memcpy(ring, from + straight, bytes - straight);
  ends.written.store(written + bytes, std::memory_order_release);
  view_.RingBell(part.peer);
  return bytes;
}

int64_t MailboxTransport::Pull(const ReceivePart& part, int64_t done) {
  RingEnds& ends = view_.ends(part.peer, rank_);
  const uint64_t read = ends.read.load(std::memory_order_relaxed);
  const int64_t held = static_cast<int64_t>(ends.written.load(std::memory_order_acquire) - read);
  const int64_t bytes = std::min({part.bytes - done, held, kPublishBytes});
  if (bytes == 0) return 0;
  auto* to = static_cast<std::byte*>(part.data) + done;
  const std::byte* ring = view_.ring(part.peer, rank_);
  const int64_t at = static_cast<int64_t>(read) & (view_.ring_bytes() - 1);
  const int64_t straight = std::min(bytes, view_.ring_bytes() - at);
  std::memcpy(to, ring + at, straight);
  std::memcpy(to + straight, ring, bytes - straight);
  ends.read.store(read + bytes, std::memory_order_release);
  view_.RingBell(part.peer);
  return bytes;
}

std::optional<PeerFailure> MailboxTransport::FindAbort() const {
  for (int peer = 0; peer < size(); ++peer) {
    const RankCell& cell = view_.cell(peer);
    if (cell.state.load() != RankState::kAborted) continue;
    const size_t bytes = std::min<size_t>(cell.reason_bytes, kMaxAbortReasonBytes);
    return PeerFailure{PeerFailure::Kind::kAborted, {peer}, std::string(cell.reason, bytes)};
  }
  return std::nullopt;
}

std::optional<PeerFailure> MailboxTransport::FindEnded(const std::vector<int>& guilty,
                                                       bool ask_alive) const {
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

void MailboxTransport::Sleep(uint32_t seen_bell) {
  RankCell& own = view_.cell(rank_);
  const timespec slice = absl::ToTimespec(kSleepSlice);
  own.sleeping.store(1);
  // The kernel compares the bell again, so a ring in between is not lost.
  if (own.bell.load() == seen_bell) Futex(&own.bell, FUTEX_WAIT, seen_bell, &slice);
  own.sleeping.store(0);
}

}  // namespace plinth::comm
