#include "plinth/comm/collective/engine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

// What one rank reduces at a time: with the parts of a few peers it fits a second-level cache,
// and the cost of an exchange is small beside it.
constexpr int64_t kShareBytes = int64_t{256} << 10;

absl::StatusCode CodeOf(PeerFailure::Kind kind) {
  switch (kind) {
    case PeerFailure::Kind::kLate:
      return absl::StatusCode::kDeadlineExceeded;
    case PeerFailure::Kind::kAborted:
      return absl::StatusCode::kAborted;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

const char* ReasonOf(PeerFailure::Kind kind) {
  switch (kind) {
    case PeerFailure::Kind::kGone:
      return ": process is gone";
    case PeerFailure::Kind::kLeft:
      return ": it has left the group";
    default:
      return "";
  }
}

}  // namespace

CollectiveEngine::CollectiveEngine(std::unique_ptr<Transport> transport, absl::Duration timeout)
    : transport_(std::move(transport)),
      rank_(transport_->rank()),
      size_(transport_->size()),
      timeout_(timeout),
      prints_(size_),
      sources_(size_) {}

absl::Status CollectiveEngine::Run(CollectiveCall call) {
  if (!failed_.ok()) return failed_;
  call.print.sequence = ++sequence_;
  const absl::Time deadline = absl::Now() + timeout_;
  absl::Status status = Agree(call.print, deadline);
  if (status.ok()) {
    switch (call.print.op) {
      case OpKind::kBarrier:
        break;
      case OpKind::kAllReduce:
        status = AllReduce(call, deadline);
        break;
      case OpKind::kReduceScatter:
        status = ReduceScatter(call, deadline);
        break;
      case OpKind::kAllGather:
        status = AllGather(call, deadline);
        break;
      case OpKind::kBroadcast:
        status = Broadcast(call, deadline);
        break;
    }
  }
  failed_ = status;
  return status;
}

// All ranks see all fingerprints, so all come to the same verdict without another word.
absl::Status CollectiveEngine::Agree(const Fingerprint& print, absl::Time deadline) {
  prints_.assign(size_, Fingerprint{});
  prints_[rank_] = print;
  for (int peer = 0; peer < size_; ++peer) {
    QueueSend(peer, reinterpret_cast<const std::byte*>(&print), sizeof(print));
    QueueReceive(peer, reinterpret_cast<std::byte*>(&prints_[peer]), sizeof(print));
  }
  RETURN_IF_ERROR(ExchangeQueued(print, true, deadline));
  if (const std::optional<std::string> mismatch = DescribeMismatch(prints_)) {
    return absl::FailedPreconditionError(*mismatch);
  }
  return absl::OkStatus();
}

absl::Status CollectiveEngine::AllReduce(const CollectiveCall& call, absl::Time deadline) {
  if (size_ == 1) return absl::OkStatus();
  const int64_t width = DTypeSize(call.out.dtype);
  auto* data = static_cast<std::byte*>(call.out.data);
  const int64_t count = call.out.count;
  const int64_t piece = kShareBytes / width * size_;
  // One turn more than there are pieces, in which the last one only returns.
  for (int64_t begin = 0; begin < count + piece; begin += piece) {
    const int64_t previous = begin - piece;
    if (previous >= 0) {
      const int64_t reduced = std::min(piece, count - previous);
      const Share own = ShareOf(rank_, previous, reduced);
      for (int peer = 0; peer < size_; ++peer) {
        const Share theirs = ShareOf(peer, previous, reduced);
        QueueSend(peer, data + own.begin * width, own.count * width);
        QueueReceive(peer, data + theirs.begin * width, theirs.count * width);
      }
    }
    const int64_t now = std::max<int64_t>(0, std::min(piece, count - begin));
    const Share own = ShareOf(rank_, begin, now);
    for (int peer = 0; peer < size_; ++peer) {
      const Share theirs = ShareOf(peer, begin, now);
      QueueSend(peer, data + theirs.begin * width, theirs.count * width);
      QueueReceive(peer, Scratch(peer, kShareBytes), own.count * width);
    }
    RETURN_IF_ERROR(ExchangeQueued(call.print, false, deadline));
    std::byte* share = data + own.begin * width;
    ReduceShare(call.print, share, own.count, share);
  }
  return absl::OkStatus();
}

absl::Status CollectiveEngine::ReduceScatter(const CollectiveCall& call, absl::Time deadline) {
  const int64_t width = DTypeSize(call.out.dtype);
  const auto* in = static_cast<const std::byte*>(call.in.data);
  auto* out = static_cast<std::byte*>(call.out.data);
  const int64_t piece = kShareBytes / width;
  for (int64_t begin = 0; begin < call.out.count; begin += piece) {
    const int64_t count = std::min(piece, call.out.count - begin);
    const auto input_for = [&](int peer) { return in + (peer * call.out.count + begin) * width; };
    for (int peer = 0; peer < size_; ++peer) {
      QueueSend(peer, input_for(peer), count * width);
      QueueReceive(peer, Scratch(peer, kShareBytes), count * width);
    }
    RETURN_IF_ERROR(ExchangeQueued(call.print, false, deadline));
    ReduceShare(call.print, input_for(rank_), count, out + begin * width);
  }
  return absl::OkStatus();
}

absl::Status CollectiveEngine::AllGather(const CollectiveCall& call, absl::Time deadline) {
  const auto* in = static_cast<const std::byte*>(call.in.data);
  auto* out = static_cast<std::byte*>(call.out.data);
  const int64_t bytes = call.in.bytes();
  for (int peer = 0; peer < size_; ++peer) {
    QueueSend(peer, in, bytes);
    QueueReceive(peer, out + peer * bytes, bytes);
  }
  RETURN_IF_ERROR(ExchangeQueued(call.print, false, deadline));
  // `in` may already be this rank's part of `out`.
  if (bytes > 0) std::memmove(out + rank_ * bytes, in, bytes);
  return absl::OkStatus();
}

absl::Status CollectiveEngine::Broadcast(const CollectiveCall& call, absl::Time deadline) {
  auto* data = static_cast<std::byte*>(call.out.data);
  const int root = call.print.root;
  if (rank_ == root) {
    for (int peer = 0; peer < size_; ++peer) QueueSend(peer, data, call.out.bytes());
  } else {
    QueueReceive(root, data, call.out.bytes());
  }
  return ExchangeQueued(call.print, false, deadline);
}

void CollectiveEngine::QueueSend(int peer, const std::byte* data, int64_t bytes) {
  if (peer != rank_ && bytes > 0) sends_.push_back({peer, data, bytes});
}

void CollectiveEngine::QueueReceive(int peer, std::byte* data, int64_t bytes) {
  if (peer != rank_ && bytes > 0) receives_.push_back({peer, data, bytes});
}

absl::Status CollectiveEngine::ExchangeQueued(const Fingerprint& print, bool arriving,
                                              absl::Time deadline) {
  const std::optional<PeerFailure> failure = transport_->Exchange(sends_, receives_, deadline);
  sends_.clear();
  receives_.clear();
  if (!failure.has_value()) return absl::OkStatus();
  absl::Status status = ToStatus(*failure, print, arriving);
  // One rank reports, the others repeat it: a rank that already passes on a report stays quiet.
  if (failure->kind != PeerFailure::Kind::kAborted) {
    transport_->Abort(std::string(status.message()));
  }
  return status;
}

absl::Status CollectiveEngine::ToStatus(const PeerFailure& failure, const Fingerprint& print,
                                        bool arriving) const {
  const std::string ranks = absl::StrCat(failure.ranks.size() == 1 ? "rank " : "ranks ",
                                         absl::StrJoin(failure.ranks, ", "));
  if (failure.kind == PeerFailure::Kind::kAborted) {
    return absl::AbortedError(absl::StrCat("aborted by ", ranks, ": ", failure.detail));
  }
  return absl::Status(
      CodeOf(failure.kind),
      absl::StrCat(ranks, arriving ? " did not arrive at " : " did not finish ", ToString(print),
                   " within ", absl::FormatDuration(timeout_), ReasonOf(failure.kind)));
}

CollectiveEngine::Share CollectiveEngine::ShareOf(int owner, int64_t piece_begin,
                                                  int64_t piece_count) const {
  const int64_t begin = piece_count * owner / size_;
  const int64_t end = piece_count * (owner + 1) / size_;
  return {piece_begin + begin, end - begin};
}

std::byte* CollectiveEngine::Scratch(int peer, int64_t bytes_each) {
  scratch_.resize(std::max(scratch_.size(), static_cast<size_t>(bytes_each * size_)));
  return scratch_.data() + peer * bytes_each;
}

void CollectiveEngine::ReduceShare(const Fingerprint& print, const std::byte* own, int64_t count,
                                   std::byte* out) {
  if (count == 0) return;
  for (int peer = 0; peer < size_; ++peer) sources_[peer] = Scratch(peer, kShareBytes);
  sources_[rank_] = own;
  Reduce(print.reduce, print.dtype, sources_, count, out);
}

}  // namespace plinth::comm
