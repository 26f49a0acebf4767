#include "plinth/comm/transport/tcp/mesh.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"

namespace plinth::comm {
namespace {

constexpr int64_t kMostBytesAtOnce = int64_t{1} << 20;
// How long the end of a data connection waits for a last word on the control connection.
constexpr absl::Duration kLastWord = absl::Milliseconds(100);
constexpr int kLongestPollMs = 1000;
constexpr size_t kControlHeaderBytes = 5;

bool WouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

TcpMesh::TcpMesh(int rank, std::vector<TcpLink> links)
    : rank_(rank), peers_(links.size()), progress_(static_cast<int>(links.size())) {
  for (size_t peer = 0; peer < links.size(); ++peer) peers_[peer].link = std::move(links[peer]);
}

TcpMesh::~TcpMesh() { Tell('L', ""); }

void TcpMesh::Abort(std::string_view reason) { Tell('A', reason.substr(0, kMaxAbortReasonBytes)); }

// The message is far smaller than an empty socket buffer, so one send takes it whole.
void TcpMesh::Tell(char kind, std::string_view text) {
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

std::optional<PeerFailure> TcpMesh::Exchange(std::span<const SendPart> sends,
                                             std::span<const ReceivePart> receives,
                                             absl::Time deadline) {
  progress_.Start(sends, receives);
  while (true) {
    if (Step()) continue;
    if (progress_.AllDone()) return std::nullopt;
    if (std::optional<PeerFailure> abort = FindAbort()) return abort;
    if (std::optional<PeerFailure> ended = FindEnded()) return ended;
    if (absl::Now() >= deadline) {
      return PeerFailure{PeerFailure::Kind::kLate, progress_.Guilty(), ""};
    }
    WaitForSockets(deadline);
  }
}

bool TcpMesh::Step() {
  return progress_.Step(
      [this](const SendPart& part, int64_t done) { return SendSome(part, done); },
      [this](const ReceivePart& part, int64_t done) { return ReceiveSome(part, done); });
}

int64_t TcpMesh::SendSome(const SendPart& part, int64_t done) {
  Peer& peer = peers_[part.peer];
  if (peer.send_broken) return 0;
  const ssize_t sent = send(peer.link.data.get(), static_cast<const std::byte*>(part.data) + done,
                            std::min(part.bytes - done, kMostBytesAtOnce), MSG_NOSIGNAL);
  if (sent >= 0) return sent;
  if (!WouldBlock(errno)) peer.send_broken = true;
  return 0;
}

int64_t TcpMesh::ReceiveSome(const ReceivePart& part, int64_t done) {
  Peer& peer = peers_[part.peer];
  if (peer.receive_ended) return 0;
  const ssize_t got = recv(peer.link.data.get(), static_cast<std::byte*>(part.data) + done,
                           std::min(part.bytes - done, kMostBytesAtOnce), 0);
  if (got > 0) return got;
  if (got == 0 || !WouldBlock(errno)) peer.receive_ended = true;
  return 0;
}

void TcpMesh::WaitForSockets(absl::Time deadline) {
  std::vector<short> events(peers_.size(), 0);
  for (const int peer : progress_.OpenSends()) {
    if (!peers_[peer].send_broken) events[peer] |= POLLOUT;
  }
  for (const int peer : progress_.OpenReceives()) events[peer] |= POLLIN;
  std::vector<pollfd> entries;
  std::vector<Peer*> controls;
  for (Peer& peer : peers_) {
    if (!peer.link.control.valid() || peer.control_ended) continue;
    entries.push_back({.fd = peer.link.control.get(), .events = POLLIN});
    controls.push_back(&peer);
  }
  for (size_t peer = 0; peer < peers_.size(); ++peer) {
    if (events[peer] == 0) continue;
    entries.push_back({.fd = peers_[peer].link.data.get(), .events = events[peer]});
  }
  if (poll(entries.data(), entries.size(), PollMilliseconds(deadline, kLongestPollMs)) <= 0) return;
  for (size_t i = 0; i < controls.size(); ++i) {
    if (entries[i].revents != 0) ReadControl(*controls[i]);
  }
}

void TcpMesh::ReadControl(Peer& peer) {
  char chunk[kControlHeaderBytes + kMaxAbortReasonBytes];
  const ssize_t got = recv(peer.link.control.get(), chunk, sizeof(chunk), 0);
  if (got > 0 && peer.control_text.size() < sizeof(chunk)) {
    peer.control_text.append(chunk, static_cast<size_t>(got));
  } else if (got >= 0 || !WouldBlock(errno)) {
    peer.control_ended = true;
  }
}

std::optional<PeerFailure> TcpMesh::FindAbort() const {
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

// A peer's data connection ends after all that it sent, so nothing more can come.
std::optional<PeerFailure> TcpMesh::FindEnded() {
  PeerFailure left{PeerFailure::Kind::kLeft, {}, ""};
  PeerFailure gone{PeerFailure::Kind::kGone, {}, ""};
  // A peer that cannot be sent to may still have sent what is open to receive.
  const bool receiving = !progress_.OpenReceives().empty();
  for (const int rank : progress_.Guilty()) {
    if (!(receiving ? peers_[rank].receive_ended : peers_[rank].send_broken)) continue;
    (SaidLeft(rank) ? left : gone).ranks.push_back(rank);
  }
  // Reading the last words may have brought an abort, which tells more.
  if (std::optional<PeerFailure> abort = FindAbort()) return abort;
  if (!gone.ranks.empty()) return gone;
  if (!left.ranks.empty()) return left;
  return std::nullopt;
}

bool TcpMesh::SaidLeft(int rank) {
  Peer& peer = peers_[rank];
  const absl::Time patience = absl::Now() + kLastWord;
  while (!peer.control_ended && absl::Now() < patience) {
    pollfd entry{.fd = peer.link.control.get(), .events = POLLIN};
    if (poll(&entry, 1, PollMilliseconds(patience, kLongestPollMs)) > 0) ReadControl(peer);
  }
  return !peer.control_text.empty() && peer.control_text[0] == 'L';
}

}  // namespace plinth::comm
