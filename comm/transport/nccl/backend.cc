#include "plinth/comm/transport/nccl/backend.h"

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/comm/call/verdict.h"
#include "plinth/comm/transport/nccl/types.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

// Looks in a row before the core is given away, and before sleeping: small calls take some tens of
// microseconds, a look about one.
constexpr int kSpins = 100;
constexpr int kYields = 2000;
constexpr absl::Duration kNap = absl::Microseconds(50);
// Asking the transport may read a file for each rank.
constexpr absl::Duration kAskTransportEvery = absl::Milliseconds(10);
// A rank that did its part may end its process while this GPU still works.
constexpr absl::Duration kGoneGrace = absl::Milliseconds(200);
// For the others to end their communicators as well.
constexpr absl::Duration kFinalizeLimit = absl::Seconds(5);

bool IsError(int result) { return result != kNcclSuccess && result != kNcclInProgress; }

// The first error of several results; "in progress" rather than success.
int Worse(int a, int b) {
  if (IsError(a)) return a;
  return b == kNcclSuccess ? a : b;
}

void Pause(int idle) {
  if (idle < kSpins) return;
  if (idle < kYields) {
    std::this_thread::yield();
  } else {
    absl::SleepFor(kNap);
  }
}

std::string CallText(const CollectiveCall& call) {
  return ToString(call.print, call.group == nullptr ? std::string_view() : call.group->name);
}

const std::byte* Bytes(const ConstBuffer& buffer) {
  return static_cast<const std::byte*>(buffer.data);
}
std::byte* Bytes(const Buffer& buffer) { return static_cast<std::byte*>(buffer.data); }

// Queues all that `queue` queues as one operation.
int InGroup(const NcclLibrary& nccl, const std::function<int()>& queue) {
  const int started = nccl.GroupStart();
  if (IsError(started)) return started;
  const int queued = queue();
  return Worse(queued, nccl.GroupEnd());
}

}  // namespace

NcclBackend::NcclBackend(NcclGroup group, Transport& transport)
    : group_(std::move(group)),
      transport_(transport),
      rank_(transport.rank()),
      size_(transport.size()) {}

NcclBackend::~NcclBackend() {
  if (group_.comm == nullptr) return;
  const NcclLibrary& nccl = group_.nccl;
  if (!group_.gpu->Use().ok()) return;
  // A rank that is gone, or aborted before this one began the call, will not end in order.
  const std::optional<PeerFailure> failure = transport_.FindFailure();
  if (aborted_.load() || (failure.has_value() && failure->kind != PeerFailure::Kind::kLeft)) {
    nccl.CommAbort(group_.comm);
    return;
  }
  int result = nccl.CommFinalize(group_.comm);
  const absl::Time limit = absl::Now() + kFinalizeLimit;
  for (int idle = 0; result == kNcclInProgress && absl::Now() < limit; ++idle) {
    Pause(idle);
    if (nccl.CommGetAsyncError(group_.comm, &result) != kNcclSuccess) break;
  }
  if (result == kNcclSuccess) {
    nccl.CommDestroy(group_.comm);
  } else {
    nccl.CommAbort(group_.comm);
  }
}

absl::Status NcclBackend::Run(const CollectiveCall& call, absl::Time deadline) {
  if (!failed_.ok()) return failed_;
  RETURN_IF_ERROR(CheckTypes(call));
  return RunQueued(call, deadline, [&] { return Queue(call); });
}

absl::Status NcclBackend::RunPairs(std::span<const CollectiveCall> calls, absl::Time deadline) {
  if (!failed_.ok()) return failed_;
  if (calls.empty()) return absl::OkStatus();
  return RunQueued(calls.front(), deadline, [&] { return QueuePairs(calls); });
}

absl::Status NcclBackend::RunQueued(const CollectiveCall& call, absl::Time deadline,
                                    const std::function<int()>& queue) {
  gone_since_.reset();
  if (absl::Status bound = group_.gpu->Use(); !bound.ok()) return Fail(std::move(bound));
  const int queued = queue();
  if (IsError(queued)) {
    return Fail(Failure(call, NcclResultText(group_.nccl, queued, group_.comm)));
  }
  absl::Status status = AwaitEnd(call, deadline);
  return status.ok() ? status : Fail(std::move(status));
}

absl::Status NcclBackend::CheckTypes(const CollectiveCall& call) const {
  const Fingerprint& print = call.print;
  if (print.reduce == ReduceOp::kNone || NcclTypeOf(print.dtype, group_.nccl.version)) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(
      absl::StrCat(ToString(print), ": NCCL ", NcclVersionText(group_.nccl.version),
                   " does not reduce ", std::string(DTypeName(print.dtype)), ", ",
                   NcclVersionText(kFirstNcclVersionWithF8), " reduces f8"));
}

int NcclBackend::Queue(const CollectiveCall& call) {
  const NcclLibrary& nccl = group_.nccl;
  void* const stream = group_.gpu->stream();
  const Fingerprint& print = call.print;
  const int type = NcclTypeOf(print.dtype, nccl.version).value_or(kNcclByte);
  const int op = NcclOpOf(print.reduce).value_or(0);
  // Nothing to move is nothing to queue, on any rank.
  if (print.count == 0 && call.send_counts.empty()) return kNcclSuccess;
  switch (print.op) {
    case OpKind::kAllReduce:
      return nccl.AllReduce(call.in.data, call.out.data, call.out.count, type, op, group_.comm,
                            stream);
    case OpKind::kReduce:
      return nccl.Reduce(call.in.data, call.out.data, call.in.count, type, op, print.root,
                         group_.comm, stream);
    case OpKind::kReduceScatter:
      return nccl.ReduceScatter(call.in.data, call.out.data, call.out.count, type, op, group_.comm,
                                stream);
    case OpKind::kAllGather:
      return nccl.AllGather(call.in.data, call.out.data, call.in.bytes(), kNcclByte, group_.comm,
                            stream);
    case OpKind::kBroadcast:
      return nccl.Broadcast(call.in.data, call.out.data, call.out.bytes(), kNcclByte, print.root,
                            group_.comm, stream);
    case OpKind::kReduceScatterV:
      return QueueReduceScatterV(call);
    case OpKind::kAllGatherV:
      return QueueAllGatherV(call);
    case OpKind::kGather:
      return QueueGather(call);
    case OpKind::kScatter:
      return QueueScatter(call);
    case OpKind::kAllToAll:
      return QueueAllToAll(call);
    case OpKind::kAllToAllV:
      return QueueAllToAllV(call);
    case OpKind::kSend:
    case OpKind::kReceive:
      return QueuePairs(std::span(&call, 1));
    case OpKind::kBarrier:
    case OpKind::kSplit:
    case OpKind::kAllocate:
      return kNcclSuccess;  // the ranks have met, and no data moves
  }
  return kNcclSuccess;
}

// Rank r reduces its share: one reduction for each root.
int NcclBackend::QueueReduceScatterV(const CollectiveCall& call) {
  const int type = *NcclTypeOf(call.print.dtype, group_.nccl.version);
  const int op = *NcclOpOf(call.print.reduce);
  return InGroup(group_.nccl, [&] {
    int result = kNcclSuccess;
    int64_t begin = 0;
    for (int root = 0; root < size_; ++root) {
      const int64_t count = call.send_counts[root];
      if (count > 0) {
        result =
            Worse(result, group_.nccl.Reduce(Bytes(call.in) + begin * DTypeSize(call.print.dtype),
                                             root == rank_ ? call.out.data : nullptr, count, type,
                                             op, root, group_.comm, group_.gpu->stream()));
      }
      begin += count;
    }
    return result;
  });
}

int NcclBackend::QueueAllGatherV(const CollectiveCall& call) {
  const int64_t width = DTypeSize(call.print.dtype);
  return InGroup(group_.nccl, [&] {
    int result = kNcclSuccess;
    std::byte* to = Bytes(call.out);
    for (int root = 0; root < size_; ++root) {
      const int64_t bytes = call.send_counts[root] * width;
      if (bytes > 0) {
        result = Worse(result,
                       group_.nccl.Broadcast(root == rank_ ? call.in.data : nullptr, to, bytes,
                                             kNcclByte, root, group_.comm, group_.gpu->stream()));
      }
      to += bytes;
    }
    return result;
  });
}

int NcclBackend::QueueGather(const CollectiveCall& call) {
  return InGroup(group_.nccl, [&] {
    const int64_t bytes = call.in.bytes();
    int result = Send(Bytes(call.in), bytes, call.print.root);
    if (rank_ != call.print.root) return result;
    for (int peer = 0; peer < size_; ++peer) {
      result = Worse(result, Receive(Bytes(call.out) + peer * bytes, bytes, peer));
    }
    return result;
  });
}

int NcclBackend::QueueScatter(const CollectiveCall& call) {
  return InGroup(group_.nccl, [&] {
    const int64_t bytes = call.out.bytes();
    int result = Receive(Bytes(call.out), bytes, call.print.root);
    if (rank_ != call.print.root) return result;
    for (int peer = 0; peer < size_; ++peer) {
      result = Worse(result, Send(Bytes(call.in) + peer * bytes, bytes, peer));
    }
    return result;
  });
}

int NcclBackend::QueueAllToAll(const CollectiveCall& call) {
  const int64_t bytes = call.in.bytes() / size_;
  return InGroup(group_.nccl, [&] {
    int result = kNcclSuccess;
    for (int peer = 0; peer < size_; ++peer) {
      result = Worse(result, Send(Bytes(call.in) + peer * bytes, bytes, peer));
      result = Worse(result, Receive(Bytes(call.out) + peer * bytes, bytes, peer));
    }
    return result;
  });
}

int NcclBackend::QueueAllToAllV(const CollectiveCall& call) {
  const int64_t width = DTypeSize(call.print.dtype);
  return InGroup(group_.nccl, [&] {
    int result = kNcclSuccess;
    const std::byte* from = Bytes(call.in);
    std::byte* to = Bytes(call.out);
    for (int peer = 0; peer < size_; ++peer) {
      const int64_t sent = call.send_counts[peer] * width;
      const int64_t received = call.receive_counts[peer] * width;
      result = Worse(result, Send(from, sent, peer));
      result = Worse(result, Receive(to, received, peer));
      from += sent;
      to += received;
    }
    return result;
  });
}

int NcclBackend::QueuePairs(std::span<const CollectiveCall> calls) {
  return InGroup(group_.nccl, [&] {
    int result = kNcclSuccess;
    for (const CollectiveCall& call : calls) {
      const int peer = call.print.root;
      result = Worse(result, call.print.op == OpKind::kSend
                                 ? Send(Bytes(call.in), call.in.bytes(), peer)
                                 : Receive(Bytes(call.out), call.out.bytes(), peer));
    }
    return result;
  });
}

int NcclBackend::Send(const std::byte* data, int64_t bytes, int peer) {
  if (bytes == 0) return kNcclSuccess;
  return group_.nccl.Send(data, bytes, kNcclByte, peer, group_.comm, group_.gpu->stream());
}

int NcclBackend::Receive(std::byte* data, int64_t bytes, int peer) {
  if (bytes == 0) return kNcclSuccess;
  return group_.nccl.Recv(data, bytes, kNcclByte, peer, group_.comm, group_.gpu->stream());
}

absl::Status NcclBackend::AwaitEnd(const CollectiveCall& call, absl::Time deadline) {
  const NcclLibrary& nccl = group_.nccl;
  absl::Time next_ask = absl::Now() + kAskTransportEvery;
  for (int idle = 0;; ++idle) {
    int state = kNcclSuccess;
    const int asked = nccl.CommGetAsyncError(group_.comm, &state);
    if (IsError(asked)) state = asked;
    if (IsError(state)) return Failure(call, NcclResultText(nccl, state, group_.comm));
    // While NCCL is still about to queue it, the stream looks done.
    if (state == kNcclSuccess) {
      const absl::StatusOr<bool> done = group_.gpu->Done();
      if (!done.ok()) return Failure(call, std::string(done.status().message()));
      if (*done) return absl::OkStatus();
    }
    if (aborted_.load()) return absl::AbortedError(absl::StrCat(ToString(call.print), ": aborted"));
    const absl::Time now = absl::Now();
    const bool late = now >= deadline;
    if (late || now >= next_ask) {
      next_ask = now + kAskTransportEvery;
      if (std::optional<absl::Status> status = AskTransport(call, late)) return *std::move(status);
    }
    Pause(idle);
  }
}

std::optional<absl::Status> NcclBackend::AskTransport(const CollectiveCall& call,
                                                      bool at_deadline) {
  std::optional<PeerFailure> failure = transport_.FindFailure();
  if (failure.has_value() && failure->kind == PeerFailure::Kind::kGone && !at_deadline) {
    if (!gone_since_.has_value()) gone_since_ = absl::Now();
    if (absl::Now() < *gone_since_ + kGoneGrace) failure.reset();
  }
  // A rank that has done its part may leave.
  if (failure.has_value() && failure->kind == PeerFailure::Kind::kLeft && !at_deadline) {
    failure.reset();
  }
  if (failure.has_value()) {
    return Verdict(*failure, call.print, /*arriving=*/false, call.timeout, call.group);
  }
  if (!at_deadline) return std::nullopt;
  return absl::DeadlineExceededError(absl::StrCat(
      RankText(rank_, call.group), " did not finish ", CallText(call), " within ",
      absl::FormatDuration(call.timeout),
      ": all ranks arrived, and NCCL reports no error (NCCL_DEBUG=INFO makes it tell more)"));
}

absl::Status NcclBackend::Failure(const CollectiveCall& call, const std::string& reason) const {
  return absl::UnavailableError(absl::StrCat(RankText(rank_, call.group), " did not finish ",
                                             CallText(call), ": NCCL: ", reason));
}

absl::Status NcclBackend::Fail(absl::Status status) {
  failed_ = status;
  if (!absl::IsAborted(status)) transport_.Abort(std::string(status.message()));
  group_.nccl.CommAbort(std::exchange(group_.comm, nullptr));
  return status;
}

}  // namespace plinth::comm
