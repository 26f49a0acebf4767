#include "plinth/comm/transport/tcp/links.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/hardware/base/check.h"

namespace plinth::comm {
namespace {

// How long the end of a data connection waits for a last word on the control connection.
constexpr absl::Duration kLastWord = absl::Milliseconds(100);
constexpr int kLongestPollMs = 1000;
constexpr size_t kControlHeaderBytes = 5;

// Looks before sleeping, about 0.4 us each: as many as paid off lately.
constexpr int kLeastSpins = 16;
constexpr int kMostSpins = 256;

// Unanswered probes, one a second after an idle second, before a host is given up.
constexpr int kLeastProbes = 3;
constexpr int kMostProbes = 19;
// A host that owes an answer for so long is the one to blame when an exchange runs out of time:
// longer than the idle second before a probe and an answer's way.
constexpr absl::Duration kSilent = absl::Milliseconds(1500);

bool WouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// What the system reports of a connection whose other host is out of reach.
bool IsLostHost(int error) {
  return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH ||
         error == EHOSTDOWN || error == ENETDOWN;
}

// Spinning with more ranks than cores keeps the awaited rank from running.
bool SpinsAtAll(size_t size) { return size <= std::thread::hardware_concurrency(); }

bool AnyOpen(const std::vector<Lane>& lanes) {
  return std::any_of(lanes.begin(), lanes.end(), [](const Lane& lane) { return lane.open(); });
}

// An open lane that will never be done.
bool AnyStuck(const std::vector<Lane>& lanes) {
  return std::any_of(lanes.begin(), lanes.end(),
                     [](const Lane& lane) { return lane.open() && lane.broken(); });
}

std::string HostOf(const absl::StatusOr<SocketAddress>& address) {
  return address.ok() ? address->Host() : "";
}

}  // namespace

bool TcpLinks::Peer::Sending() const { return AnyOpen(out); }
bool TcpLinks::Peer::Receiving() const { return AnyOpen(in); }

absl::StatusOr<std::unique_ptr<Transport>> TcpLinks::Make(int rank, std::vector<TcpLink> links,
                                                          std::string choice,
                                                          absl::Duration timeout) {
  Fd controls(epoll_create1(EPOLL_CLOEXEC));
  Fd alarm(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!controls.valid() || !alarm.valid()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "tcp: cannot watch the connections of ", links.size(), " ranks: ", std::strerror(errno)));
  }
  return std::unique_ptr<Transport>(new TcpLinks(rank, std::move(links), std::move(choice), timeout,
                                                 std::move(controls), std::move(alarm)));
}

TcpLinks::TcpLinks(int rank, std::vector<TcpLink> links, std::string choice, absl::Duration timeout,
                   Fd controls, Fd alarm)
    : rank_(rank),
      choice_(std::move(choice)),
      peers_(links.size()),
      controls_(std::move(controls)),
      alarm_(std::move(alarm)),
      spins_(SpinsAtAll(links.size()) ? kLeastSpins : 0),
      note_frames_(kFrameBytes * links.size()) {
  const int probes = static_cast<int>(
      std::clamp<int64_t>(absl::ToInt64Seconds(timeout / 2) - 1, kLeastProbes, kMostProbes));
  for (size_t i = 0; i < links.size(); ++i) {
    Peer& peer = peers_[i];
    peer.link = std::move(links[i]);
    peer.out.resize(peer.link.data.size());
    peer.in.resize(peer.link.data.size());
    if (!peer.link.control.valid()) continue;
    epoll_event watched{.events = EPOLLIN, .data = {.u64 = i}};
    CHECK_EQ(epoll_ctl(controls_.get(), EPOLL_CTL_ADD, peer.link.control.get(), &watched), 0)
        << std::strerror(errno);
    ProbeIdle(peer.link.control, probes);
    peer.host = HostOf(RemoteAddress(peer.link.control));
    peer.same_host = peer.host == HostOf(LocalAddress(peer.link.control));
  }
}

TcpLinks::~TcpLinks() { Tell('L', ""); }

void TcpLinks::Abort(std::string_view reason) {
  Tell('A', reason.substr(0, kMaxAbortReasonBytes));
  // For this rank's own thread, which nobody else wakes. It stays readable: the group is finished.
  CHECK_EQ(eventfd_write(alarm_.get(), 1), 0) << std::strerror(errno);
}

// The message is far smaller than an empty socket buffer, so one send takes it whole.
void TcpLinks::Tell(char kind, std::string_view text) {
  if (told_.exchange(true)) return;
  const uint32_t length = static_cast<uint32_t>(text.size());
  std::string message(1, kind);
  message.append(reinterpret_cast<const char*>(&length), sizeof(length));
  message.append(text);
  for (const Peer& peer : peers_) {
    if (!peer.link.control.valid()) continue;
    // A peer that is gone needs no word.
    [[maybe_unused]] const ssize_t sent =
        send(peer.link.control.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

std::optional<PeerFailure> TcpLinks::Exchange(std::span<const SendPart> sends,
                                              std::span<const ReceivePart> receives,
                                              absl::Time deadline) {
  for (const SendPart& part : sends) {
    Peer& peer = peers_[part.peer];
    AddStriped(peer.out, peer.sent, const_cast<void*>(part.data), part.bytes);
  }
  for (const ReceivePart& part : receives) {
    Peer& peer = peers_[part.peer];
    AddStriped(peer.in, peer.received, part.data, part.bytes);
  }
  if (auto failure = Drive(deadline)) return failure;
  CountBytes(sends, receives);
  return std::nullopt;
}

// Notes stay out of the count by which parts are striped: all go through the first lane.
std::optional<PeerFailure> TcpLinks::Announce(std::span<const std::byte> note,
                                              std::vector<std::span<const std::byte>>& notes,
                                              absl::Time deadline) {
  CHECK_LE(note.size(), kMostNoteBytes);
  std::byte* own = Frame(rank_);
  WriteFrame(NoteKind::kAnnounce, note, own);
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank_) continue;
    peers_[peer].out.front().Add(own, kFirstPartBytes + RestOf(own));
    peers_[peer].in.front().Add(Frame(peer), kFirstPartBytes);
  }
  if (auto failure = Drive(deadline, NoteKind::kAnnounce)) return failure;

  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank_) continue;
    peers_[peer].in.front().Add(Frame(peer) + kFirstPartBytes, RestOf(Frame(peer)));
  }
  if (auto failure = Drive(deadline)) return failure;

  // The peers may have given up on this rank after they sent their notes.
  ReadControls();
  if (std::optional<PeerFailure> abort = FindAbort()) return abort;
  notes.resize(peers_.size());
  for (int peer = 0; peer < size(); ++peer) notes[peer] = NoteIn(Frame(peer));
  return std::nullopt;
}

std::optional<PeerFailure> TcpLinks::Greet(std::span<Greeting> greetings, absl::Time deadline) {
  greet_frames_.resize(kFirstPartBytes * greetings.size());
  for (size_t i = 0; i < greetings.size(); ++i) {
    CHECK_LE(greetings[i].own.size(), kMostGreetingBytes);
    std::byte* own = greet_frames_.data() + kFirstPartBytes * i;
    WriteFrame(NoteKind::kGreeting, greetings[i].own, own);
    Peer& peer = peers_[greetings[i].peer];
    peer.out.front().Add(own, kFirstPartBytes);
    peer.in.front().Add(Frame(greetings[i].peer), kFirstPartBytes);
  }
  if (auto failure = Drive(deadline, NoteKind::kGreeting)) return failure;
  for (Greeting& greeting : greetings) greeting.theirs = NoteIn(Frame(greeting.peer));
  return std::nullopt;
}

std::optional<PeerFailure> TcpLinks::Drive(absl::Time deadline, std::optional<NoteKind> awaited) {
  active_.clear();
  for (int peer = 0; peer < size(); ++peer) {
    if (peers_[peer].Sending() || peers_[peer].Receiving()) active_.push_back(peer);
  }
  int idle = 0;
  while (true) {
    if (Step()) {
      if (idle > 0 && idle <= spins_) spins_ = std::min(2 * spins_, kMostSpins);
      idle = 0;
      if (awaited.has_value()) {
        if (std::optional<PeerFailure> elsewhere = FindElsewhere(*awaited)) return elsewhere;
      }
      continue;
    }
    if (AllDone()) return std::nullopt;
    if (idle++ < spins_) continue;
    if (std::optional<PeerFailure> abort = FindAbort()) return abort;
    // Another thread of this rank has aborted the group.
    if (told_.load()) return PeerFailure{PeerFailure::Kind::kAborted, {rank_}, ""};
    if (std::optional<PeerFailure> ended = FindEnded()) return ended;
    if (std::optional<PeerFailure> lost = FindLostHosts(false)) return lost;
    if (absl::Now() >= deadline) {
      if (std::optional<PeerFailure> silent = FindLostHosts(true)) return silent;
      return PeerFailure{PeerFailure::Kind::kLate, Guilty(), ""};
    }
    if (idle == spins_ + 1) spins_ = std::max(spins_ / 2, std::min(spins_, kLeastSpins));
    WaitForSockets(deadline);
  }
}

bool TcpLinks::Step() {
  bool moved = false;
  for (const int rank : active_) {
    Peer& peer = peers_[rank];
    for (size_t i = 0; i < peer.out.size(); ++i) {
      const int fd = peer.link.data[i].get();
      moved |= peer.out[i].Send(fd) > 0;
      moved |= peer.in[i].Receive(fd) > 0;
    }
  }
  return moved;
}

std::optional<PeerFailure> TcpLinks::FindElsewhere(NoteKind awaited) const {
  for (const int rank : active_) {
    const std::byte* frame = note_frames_.data() + kFrameBytes * rank;
    const bool is_there = !peers_[rank].in.front().open();
    if (is_there && KindOf(frame) != awaited) return Elsewhere(rank, NoteIn(frame));
  }
  return std::nullopt;
}

bool TcpLinks::AllDone() const {
  return std::none_of(active_.begin(), active_.end(), [this](int peer) {
    return peers_[peer].Sending() || peers_[peer].Receiving();
  });
}

std::vector<int> TcpLinks::Guilty() const {
  std::vector<int> receiving;
  std::vector<int> sending;
  for (const int peer : active_) {
    if (peers_[peer].Receiving()) receiving.push_back(peer);
    if (peers_[peer].Sending()) sending.push_back(peer);
  }
  return receiving.empty() ? sending : receiving;
}

void TcpLinks::WaitForSockets(absl::Time deadline) {
  polled_.clear();
  polled_.push_back({.fd = controls_.get(), .events = POLLIN});
  polled_.push_back({.fd = alarm_.get(), .events = POLLIN});
  for (const int rank : active_) {
    const Peer& peer = peers_[rank];
    for (size_t i = 0; i < peer.out.size(); ++i) {
      short events = 0;
      if (peer.out[i].open() && !peer.out[i].broken()) events |= POLLOUT;
      if (peer.in[i].open() && !peer.in[i].broken()) events |= POLLIN;
      if (events != 0) polled_.push_back({.fd = peer.link.data[i].get(), .events = events});
    }
  }
  if (poll(polled_.data(), polled_.size(), PollMilliseconds(deadline, kLongestPollMs)) <= 0) return;
  if (polled_.front().revents != 0) ReadControls();
}

void TcpLinks::ReadControls() {
  epoll_event ready[16];
  int count = 0;
  do {
    count = epoll_wait(controls_.get(), ready, std::size(ready), 0);
    for (int i = 0; i < count; ++i) ReadControl(peers_[ready[i].data.u64]);
  } while (count == static_cast<int>(std::size(ready)));
}

void TcpLinks::ReadControl(Peer& peer) {
  char chunk[kControlHeaderBytes + kMaxAbortReasonBytes];
  const ssize_t got = recv(peer.link.control.get(), chunk, sizeof(chunk), MSG_DONTWAIT);
  if (got > 0 && peer.control_text.size() < sizeof(chunk)) {
    peer.control_text.append(chunk, static_cast<size_t>(got));
  } else if (got >= 0 || !WouldBlock(errno)) {
    peer.control_ended = true;
    peer.control_error = got < 0 ? errno : 0;
    epoll_ctl(controls_.get(), EPOLL_CTL_DEL, peer.link.control.get(), nullptr);
  }
}

std::optional<PeerFailure> TcpLinks::FindAbort() const {
  for (size_t peer = 0; peer < peers_.size(); ++peer) {
    const std::string& text = peers_[peer].control_text;
    if (text.size() < kControlHeaderBytes || text[0] != 'A') continue;
    uint32_t length = 0;
    std::memcpy(&length, text.data() + 1, sizeof(length));
    if (text.size() < kControlHeaderBytes + length) continue;
    return PeerFailure{PeerFailure::Kind::kAborted,
                       {static_cast<int>(peer)},
                       text.substr(kControlHeaderBytes, length)};
  }
  return std::nullopt;
}

// A peer's data connections end after all that it sent, so nothing more can come.
std::optional<PeerFailure> TcpLinks::FindEnded() {
  PeerFailure left{PeerFailure::Kind::kLeft, {}, ""};
  PeerFailure gone{PeerFailure::Kind::kGone, {}, ""};
  for (const int rank : Guilty()) {
    const Peer& peer = peers_[rank];
    // A peer that cannot be sent to may still have sent what is open to receive.
    if (!AnyStuck(peer.Receiving() ? peer.in : peer.out)) continue;
    (SaidLeft(rank) ? left : gone).ranks.push_back(rank);
  }
  // Reading the last words may have brought an abort, which tells more.
  if (std::optional<PeerFailure> abort = FindAbort()) return abort;
  if (!gone.ranks.empty()) return gone;
  if (!left.ranks.empty()) return left;
  return std::nullopt;
}

// Peers whose host does not answer, guilty or not: without it no call can end well, and whoever
// waits for a rank that itself waits for that host shall not blame the wrong one. When no other
// host answers, and there are several, it is this one that is cut off.
std::optional<PeerFailure> TcpLinks::FindLostHosts(bool at_deadline) const {
  PeerFailure lost{PeerFailure::Kind::kGone, {}, "its host does not answer"};
  for (int rank = 0; rank < size(); ++rank) {
    const Peer& peer = peers_[rank];
    if (!peer.link.control.valid()) continue;
    if (IsLostHost(peer.control_error) || (at_deadline && SilenceOf(peer.link.control) > kSilent)) {
      lost.ranks.push_back(rank);
    }
  }
  if (lost.ranks.empty()) return std::nullopt;

  std::set<std::string> silent_hosts;
  std::vector<int> here;
  for (int rank = 0; rank < size(); ++rank) {
    const Peer& peer = peers_[rank];
    if (rank == rank_ || peer.same_host) {
      here.push_back(rank);
    } else if (IsLostHost(peer.control_error) || SilenceOf(peer.link.control) > kSilent) {
      silent_hosts.insert(peer.host);
    } else {
      return lost;  // some host answers
    }
  }
  if (silent_hosts.size() < 2) return lost;
  return PeerFailure{PeerFailure::Kind::kGone, here, "cut off, no other host answers"};
}

std::optional<PeerFailure> TcpLinks::FindFailure() {
  PeerFailure left{PeerFailure::Kind::kLeft, {}, ""};
  PeerFailure gone{PeerFailure::Kind::kGone, {}, ""};
  ReadControls();
  for (int rank = 0; rank < size(); ++rank) {
    const Peer& peer = peers_[rank];
    if (!peer.link.control.valid()) continue;
    // Its last word, if it had one, came before the end.
    if (!peer.control_text.empty() && peer.control_text[0] == 'L') {
      left.ranks.push_back(rank);
    } else if (peer.control_ended) {
      gone.ranks.push_back(rank);
    }
  }
  if (std::optional<PeerFailure> abort = FindAbort()) return abort;
  if (std::optional<PeerFailure> lost = FindLostHosts(false)) return lost;
  if (!gone.ranks.empty()) return gone;
  if (!left.ranks.empty()) return left;
  return std::nullopt;
}

bool TcpLinks::SaidLeft(int rank) {
  Peer& peer = peers_[rank];
  const absl::Time patience = absl::Now() + kLastWord;
  while (!peer.control_ended && absl::Now() < patience) {
    pollfd entry{.fd = peer.link.control.get(), .events = POLLIN};
    if (poll(&entry, 1, PollMilliseconds(patience, kLongestPollMs)) > 0) ReadControl(peer);
  }
  return !peer.control_text.empty() && peer.control_text[0] == 'L';
}

}  // namespace plinth::comm
