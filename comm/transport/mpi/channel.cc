#include "plinth/comm/transport/mpi/channel.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace plinth::comm {
namespace {

constexpr int kDataTag = 0;
constexpr int kControlTag = 1;
// Of one message: MPI counts in ints.
constexpr int64_t kMostBytesAtOnce = int64_t{1} << 30;
// Looks before the thread lets others run, and before it sleeps: about a microsecond each, as a
// look makes MPI progress.
constexpr int kSpins = 50;
constexpr int kYields = 500;
constexpr absl::Duration kNap = absl::Microseconds(100);
// For a word of at most kMaxAbortReasonBytes, which MPI sends and receives at once.
constexpr absl::Duration kWordLimit = absl::Milliseconds(100);

void Pause(int idle) {
  if (idle < kSpins) return;
  if (idle < kYields) {
    std::this_thread::yield();
  } else {
    absl::SleepFor(kNap);
  }
}

}  // namespace

MpiTransport::MpiTransport(const MpiLibrary& mpi, MpiComm comm, int rank, int size)
    : mpi_(mpi), comm_(comm), rank_(rank), peers_(size), progress_(size) {}

MpiTransport::~MpiTransport() {
  Tell('L', "");
  const absl::Time limit = absl::Now() + kWordLimit;
  for (int peer = 0; peer < static_cast<int>(told_transfers_.size()); ++peer) {
    Transfer& transfer = told_transfers_[peer];
    while (transfer.bytes > 0 && Finish(peer, transfer) == 0 && absl::Now() < limit) {
      std::this_thread::yield();
    }
    // MPI still reads the text: better a small leak.
    if (transfer.bytes > 0) static_cast<void>(told_text_.release());
  }
}

void MpiTransport::Abort(std::string_view reason) {
  AbandonMpi();
  Tell('A', reason.substr(0, kMaxAbortReasonBytes));
}

void MpiTransport::Tell(char kind, std::string_view text) {
  if (told_.exchange(true)) return;
  told_text_ = std::make_unique<std::string>(1, kind);
  told_text_->append(text);
  told_transfers_.resize(peers_.size());
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank_) continue;
    Transfer& transfer = told_transfers_[peer];
    // A peer that cannot be told needs no word.
    if (mpi_.Isend(told_text_->data(), static_cast<int>(told_text_->size()), mpi_.byte, peer,
                   kControlTag, comm_, &transfer.request) == kMpiSuccess) {
      transfer.bytes = static_cast<int64_t>(told_text_->size());
    }
  }
}

std::optional<PeerFailure> MpiTransport::Exchange(std::span<const SendPart> sends,
                                                  std::span<const ReceivePart> receives,
                                                  absl::Time deadline) {
  progress_.Start(sends, receives);
  for (int idle = 0;; ++idle) {
    if (Step()) idle = 0;
    if (broken_.has_value()) return Fail(*broken_);
    if (progress_.AllDone()) {
      CountBytes(sends, receives);
      return std::nullopt;
    }
    if (idle < kSpins) continue;
    ReadControl();
    if (std::optional<PeerFailure> abort = FindAbort()) return Fail(*std::move(abort));
    if (std::optional<PeerFailure> left = FindLeft(progress_.Guilty())) {
      // What it sent before it left may still complete the exchange.
      if (Step()) continue;
      return Fail(*std::move(left));
    }
    if (absl::Now() >= deadline) {
      return Fail({PeerFailure::Kind::kLate, progress_.Guilty(), ""});
    }
    Pause(idle);
  }
}

PeerFailure MpiTransport::Fail(PeerFailure failure) {
  AbandonMpi();
  return failure;
}

bool MpiTransport::Check(int rank, int code, const char* what) {
  if (code == kMpiSuccess) return true;
  if (!broken_.has_value()) {
    broken_ = {
        PeerFailure::Kind::kGone, {rank}, std::string(MpiResult(mpi_, code, what).message())};
  }
  return false;
}

bool MpiTransport::Step() {
  return progress_.Step(
      [this](const SendPart& part, int64_t done) { return SendSome(part, done); },
      [this](const ReceivePart& part, int64_t done) { return ReceiveSome(part, done); });
}

int64_t MpiTransport::SendSome(const SendPart& part, int64_t done) {
  Transfer& sending = peers_[part.peer].sending;
  if (sending.bytes == 0) {
    const int64_t bytes = std::min(part.bytes - done, kMostBytesAtOnce);
    const int code =
        mpi_.Isend(static_cast<const std::byte*>(part.data) + done, static_cast<int>(bytes),
                   mpi_.byte, part.peer, kDataTag, comm_, &sending.request);
    if (!Check(part.peer, code, "send")) return 0;
    sending.bytes = bytes;
  }
  return Finish(part.peer, sending);
}

int64_t MpiTransport::ReceiveSome(const ReceivePart& part, int64_t done) {
  Peer& peer = peers_[part.peer];
  if (peer.receiving.bytes == 0) {
    if (peer.surplus_begin < peer.surplus.size()) return TakeSurplus(peer, part, done);
    if (!BeginReceive(peer, part, done)) return 0;
  }
  const int64_t got = Finish(part.peer, peer.receiving);
  if (got == 0) return 0;
  return peer.into_surplus ? TakeSurplus(peer, part, done) : got;
}

int64_t MpiTransport::TakeSurplus(Peer& peer, const ReceivePart& part, int64_t done) {
  const int64_t held = static_cast<int64_t>(peer.surplus.size() - peer.surplus_begin);
  const int64_t bytes = std::min(part.bytes - done, held);
  std::memcpy(static_cast<std::byte*>(part.data) + done, peer.surplus.data() + peer.surplus_begin,
              bytes);
  peer.surplus_begin += bytes;
  return bytes;
}

bool MpiTransport::BeginReceive(Peer& peer, const ReceivePart& part, int64_t done) {
  int found = 0;
  MpiMessage message = nullptr;
  MpiStatus status;
  const int probed = mpi_.Improbe(part.peer, kDataTag, comm_, &found, &message, &status);
  if (!Check(part.peer, probed, "look for a message") || found == 0) return false;
  const int64_t bytes = static_cast<int64_t>(status.bytes);
  peer.into_surplus = bytes > part.bytes - done;
  std::byte* to = static_cast<std::byte*>(part.data) + done;
  if (peer.into_surplus) {
    peer.surplus.resize(bytes);
    peer.surplus_begin = 0;
    to = peer.surplus.data();
  }
  const int code =
      mpi_.Imrecv(to, static_cast<int>(bytes), mpi_.byte, &message, &peer.receiving.request);
  if (!Check(part.peer, code, "receive")) return false;
  peer.receiving.bytes = bytes;
  return true;
}

int64_t MpiTransport::Finish(int rank, Transfer& transfer) {
  int done = 0;
  MpiStatus status;
  if (!Check(rank, mpi_.Test(&transfer.request, &done, &status), "end a transfer") || done == 0) {
    return 0;
  }
  return std::exchange(transfer.bytes, 0);
}

void MpiTransport::ReadControl() {
  while (true) {
    int found = 0;
    MpiMessage message = nullptr;
    MpiStatus status;
    const int probed = mpi_.Improbe(kMpiAnySource, kControlTag, comm_, &found, &message, &status);
    if (probed != kMpiSuccess || found == 0) return;
    const int from = status.source;
    auto text = std::make_unique<std::string>(status.bytes, '\0');
    Transfer transfer{nullptr, static_cast<int64_t>(text->size())};
    const int code = mpi_.Imrecv(text->data(), static_cast<int>(text->size()), mpi_.byte, &message,
                                 &transfer.request);
    if (!Check(from, code, "receive")) return;
    const absl::Time limit = absl::Now() + kWordLimit;
    while (Finish(from, transfer) == 0) {
      if (!broken_.has_value() && absl::Now() < limit) continue;
      static_cast<void>(text.release());  // MPI may still write there
      return;
    }
    if (text->front() == 'A') {
      peers_[from].abort_reason = text->substr(1);
    } else {
      peers_[from].left = true;
    }
  }
}

std::optional<PeerFailure> MpiTransport::FindAbort() const {
  for (int peer = 0; peer < size(); ++peer) {
    const std::optional<std::string>& reason = peers_[peer].abort_reason;
    if (reason.has_value()) return PeerFailure{PeerFailure::Kind::kAborted, {peer}, *reason};
  }
  return std::nullopt;
}

std::optional<PeerFailure> MpiTransport::FindFailure() {
  ReadControl();
  if (broken_.has_value()) return broken_;
  if (std::optional<PeerFailure> abort = FindAbort()) return abort;
  std::vector<int> all(peers_.size());
  std::iota(all.begin(), all.end(), 0);
  return FindLeft(all);
}

std::optional<PeerFailure> MpiTransport::FindLeft(std::span<const int> peers) const {
  PeerFailure left{PeerFailure::Kind::kLeft, {}, ""};
  for (const int peer : peers) {
    if (peers_[peer].left && peers_[peer].receiving.bytes == 0) left.ranks.push_back(peer);
  }
  if (left.ranks.empty()) return std::nullopt;
  return left;
}

}  // namespace plinth::comm
