#include "plinth/comm/transport/mailbox/mailbox.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "plinth/comm/transport/note_frame.h"
#include "plinth/hardware/base/check.h"

namespace plinth::comm {
namespace {

// Published at once, so that the reader of a long message starts while it is being written.
constexpr int64_t kPublishBytes = int64_t{64} << 10;
// Moved before sleepers are woken in the midst of a transfer: see Waiter::AnyoneSleeps.
constexpr int64_t kWakeBytes = int64_t{16} << 10;
// Of one size, two cache lines, and put into an empty ring at once.
constexpr size_t kGreetFrameBytes = kFrameHeaderBytes + kMostGreetingBytes;

}  // namespace

MailboxTransport::MailboxTransport(std::string name, int rank, MailboxView view,
                                   std::shared_ptr<void> block, Waiter::AliveCheck alive,
                                   std::unique_ptr<Regions> regions)
    : name_(std::move(name)),
      rank_(rank),
      block_(std::move(block)),
      view_(view),
      waiter_(rank, view, std::move(alive)),
      space_(*this, rank, view, waiter_, std::move(regions)),
      progress_(view.size()),
      moved_(view.size()) {}

MailboxTransport::~MailboxTransport() {
  RankState present = RankState::kPresent;
  if (view_.cell(rank_).state.compare_exchange_strong(present, RankState::kLeft)) {
    waiter_.WakeAll();
  }
}

void MailboxTransport::Abort(std::string_view reason) {
  RankCell& own = view_.cell(rank_);
  RankState present = RankState::kPresent;
  if (!own.state.compare_exchange_strong(present, RankState::kAborting)) return;
  own.reason_bytes = static_cast<uint32_t>(std::min(reason.size(), kMaxAbortReasonBytes));
  std::memcpy(own.reason, reason.data(), own.reason_bytes);
  own.state.store(RankState::kAborted);
  view_.group().aborted.store(1);
  waiter_.WakeAll();
}

template <typename MoveSome, typename Stop>
std::optional<PeerFailure> MailboxTransport::Drive(const MoveSome& step, const Stop& stop,
                                                   absl::Time deadline) {
  std::optional<PeerFailure> failure;
  while (!progress_.AllDone() && !stop() && !failure.has_value()) {
    if (waiter_.Glance(step)) {
      if (bytes_unwoken_ >= kWakeBytes) WakeMoved();
      continue;
    }
    WakeMoved();
    failure = waiter_.Await(
        step, [this] { return progress_.Guilty(); }, Waiter::WakenBy::kAnyone, deadline);
  }
  WakeMoved();
  return failure;
}

std::optional<PeerFailure> MailboxTransport::Exchange(std::span<const SendPart> sends,
                                                      std::span<const ReceivePart> receives,
                                                      absl::Time deadline) {
  progress_.Start(sends, receives);
  const auto step = [this] { return Step(); };
  const auto never = [] { return false; };
  if (auto failure = Drive(step, never, deadline)) return failure;
  CountBytes(sends, receives);
  return std::nullopt;
}

std::optional<PeerFailure> MailboxTransport::Announce(
    std::span<const std::byte> note, std::vector<std::span<const std::byte>>& notes,
    absl::Time deadline) {
  CHECK_LE(note.size(), kMostNoteBytes);
  const uint32_t sequence = ++announces_;
  NoteSlot& own = view_.note(rank_, sequence);
  own.bytes = static_cast<uint32_t>(note.size());
  if (!note.empty()) std::memcpy(own.data, note.data(), note.size());
  own.sequence.store(sequence, std::memory_order_release);

  int arrived = 0;  // the ranks below it have posted
  const auto all_posted = [&] {
    while (arrived < size() && HasPosted(arrived, sequence)) ++arrived;
    return arrived == size();
  };
  const bool done = waiter_.Glance(all_posted);
  // Not earlier: the fence in it would wait until the note has left this core.
  waiter_.WakeSleepers();
  if (!done) {
    int greeter = -1;
    const auto posted_or_greeted = [&] {
      if (all_posted()) return true;
      greeter = FindGreeter(arrived, sequence);
      return greeter >= 0;
    };
    const auto missing = [&] {
      std::vector<int> ranks;
      for (int rank = arrived; rank < size(); ++rank) {
        if (!HasPosted(rank, sequence)) ranks.push_back(rank);
      }
      return ranks;
    };
    std::optional<PeerFailure> failure =
        waiter_.Await(posted_or_greeted, missing, Waiter::WakenBy::kFirstGuilty, deadline);
    // What the greeter had shown goes before an abort that came of it, as in Greet.
    if (failure.has_value() && !posted_or_greeted()) return failure;
    if (greeter >= 0) return ReadGreeter(greeter);
  }
  // A rank that comes after the others gave up would find all notes: it is told so all the same.
  if (view_.group().aborted.load(std::memory_order_relaxed) != 0) return waiter_.FindAbort();
  notes.resize(size());
  for (int rank = 0; rank < size(); ++rank) notes[rank] = NoteOf(rank, sequence);
  return std::nullopt;
}

std::optional<PeerFailure> MailboxTransport::Greet(std::span<Greeting> greetings,
                                                   absl::Time deadline) {
  const size_t count = greetings.size();
  greet_frames_.resize(2 * kGreetFrameBytes * count);
  greet_sends_.clear();
  greet_receives_.clear();
  const auto frame = [this](size_t i) { return greet_frames_.data() + kGreetFrameBytes * i; };
  for (size_t i = 0; i < count; ++i) {
    CHECK_LE(greetings[i].own.size(), kMostGreetingBytes);
    WriteFrame(NoteKind::kGreeting, greetings[i].own, frame(i));
    greet_sends_.push_back({greetings[i].peer, frame(i), kGreetFrameBytes});
    greet_receives_.push_back({greetings[i].peer, frame(count + i), kGreetFrameBytes});
  }
  progress_.Start(greet_sends_, greet_receives_);
  int announced = -1;
  const auto step = [&] {
    if (Step()) return true;
    const int found = FindAnnounced(greetings);
    if (found < 0) return false;
    // What its rank had sent before it posted the note is visible by now.
    if (!Step()) announced = found;
    return true;
  };
  const auto is_announced = [&] { return announced >= 0; };
  std::optional<PeerFailure> failure = Drive(step, is_announced, deadline);
  // What peers had shown goes before an abort that came of it: both sides give one account.
  while (failure.has_value() && announced < 0 && !progress_.AllDone() && step()) continue;
  if (announced >= 0) {
    const int peer = greetings[announced].peer;
    return Elsewhere(peer, NoteOf(peer, announces_ + 1));
  }
  if (failure.has_value() && !progress_.AllDone()) return failure;
  for (size_t i = 0; i < count; ++i) greetings[i].theirs = NoteIn(frame(count + i));
  return std::nullopt;
}

std::span<const std::byte> MailboxTransport::NoteOf(int rank, uint32_t sequence) const {
  const NoteSlot& slot = view_.note(rank, sequence);
  return {slot.data, std::min<size_t>(slot.bytes, kMostNoteBytes)};
}

int MailboxTransport::FindGreeter(int first, uint32_t sequence) const {
  for (int rank = first; rank < size(); ++rank) {
    if (rank == rank_) continue;
    const RingEnds& ends = view_.ends(rank, rank_);
    // All that it had sent before was received, so this is a greeting, or data of the very call
    // that the note was for.
    const bool sent =
        ends.written.load(std::memory_order_acquire) != ends.read.load(std::memory_order_relaxed);
    if (sent && !HasPosted(rank, sequence)) return rank;
  }
  return -1;
}

PeerFailure MailboxTransport::ReadGreeter(int rank) {
  std::array<std::byte, kGreetFrameBytes> frame;
  Pull({rank, frame.data(), kGreetFrameBytes}, 0);
  return Elsewhere(rank, NoteIn(frame.data()));
}

int MailboxTransport::FindAnnounced(std::span<const Greeting> greetings) const {
  for (size_t i = 0; i < greetings.size(); ++i) {
    if (progress_.ReceiveOpen(i) && HasPosted(greetings[i].peer, announces_ + 1)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

void MailboxTransport::WakeMoved() {
  if (bytes_unwoken_ == 0) return;
  bytes_unwoken_ = 0;
  const bool anyone = waiter_.AnyoneSleeps();
  for (int peer = 0; peer < size(); ++peer) {
    if (anyone && moved_[peer]) waiter_.WakeSleeper(peer);
    moved_[peer] = 0;
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
  moved_[part.peer] = 1;
  bytes_unwoken_ += bytes;
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
  moved_[part.peer] = 1;
  bytes_unwoken_ += bytes;
  return bytes;
}

}  // namespace plinth::comm
