#include "plinth/comm/collective/arguments.h"

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

std::string Text(DType dtype) { return std::string(DTypeName(dtype)); }
std::string Text(const ConstBuffer& buffer) {
  return absl::StrCat(Text(buffer.dtype), " x ", buffer.count);
}

absl::Status CheckBuffer(const char* name, const ConstBuffer& buffer) {
  if (buffer.count >= 0 && (buffer.count == 0 || buffer.data != nullptr)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": ", buffer.count, " elements at ",
                   buffer.data == nullptr ? "no address" : "an address"));
}

absl::Status CheckReduce(ReduceOp op, DType dtype) {
  if (CanReduce(op, dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot reduce ", Text(dtype), " by ", std::string(ReduceOpName(op))));
}

// `whole` must hold one `part` per rank.
absl::Status CheckParts(const char* part_name, const ConstBuffer& part, const char* whole_name,
                        const ConstBuffer& whole, int size) {
  RETURN_IF_ERROR(CheckBuffer(part_name, part));
  RETURN_IF_ERROR(CheckBuffer(whole_name, whole));
  // Divided rather than multiplied: counts may be absurd.
  if (part.dtype != whole.dtype || whole.count % size != 0 || whole.count / size != part.count) {
    return absl::InvalidArgumentError(absl::StrCat(whole_name, " holds ", Text(whole), ", want ",
                                                   size, " times the ", Text(part), " of ",
                                                   part_name, ", once for each rank"));
  }
  return absl::OkStatus();
}

absl::Status CheckSame(const ConstBuffer& in, const ConstBuffer& out) {
  RETURN_IF_ERROR(CheckBuffer("in", in));
  RETURN_IF_ERROR(CheckBuffer("out", out));
  if (in.dtype == out.dtype && in.count == out.count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("out holds ", Text(out), ", want the ", Text(in), " of in"));
}

// The counts of one list, whose sum must be what `buffer` holds.
absl::Status CheckCounts(const char* counts_name, std::span<const int64_t> counts, const char* name,
                         const ConstBuffer& buffer, int size) {
  RETURN_IF_ERROR(CheckBuffer(name, buffer));
  if (counts.size() != static_cast<size_t>(size)) {
    return absl::InvalidArgumentError(absl::StrCat(
        counts_name, " has ", counts.size(), " numbers, want one for each of ", size, " ranks"));
  }
  int64_t left = buffer.count;
  for (const int64_t count : counts) {
    if (count < 0) {
      return absl::InvalidArgumentError(absl::StrCat(counts_name, " has the count ", count));
    }
    // Subtracted rather than added up: counts may be absurd.
    if (count > left) left = -1;
    if (left < 0) break;
    left -= count;
  }
  if (left == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      name, " holds ", Text(buffer), " elements, which is not the sum of ", counts_name));
}

// Apart, or `part` exactly at element `offset` of `whole`: the form in place.
absl::Status CheckOverlap(const ConstBuffer& part, const ConstBuffer& whole, int64_t offset,
                          bool in_place_allowed = true) {
  if (part.bytes() == 0 || whole.bytes() == 0) return absl::OkStatus();
  const auto* p = static_cast<const std::byte*>(part.data);
  const auto* w = static_cast<const std::byte*>(whole.data);
  if (p + part.bytes() <= w || w + whole.bytes() <= p) return absl::OkStatus();
  if (in_place_allowed && p == w + offset * DTypeSize(whole.dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError("in and out overlap, and not as the operation in place does");
}

CollectiveCall MakeCall(OpKind op, ReduceOp reduce, const ConstBuffer& in, const Buffer& out,
                        DType dtype, int64_t count, int root = -1) {
  CollectiveCall call;
  call.print.op = op;
  call.print.reduce = reduce;
  call.print.dtype = dtype;
  call.print.count = count;
  call.print.root = root;
  call.in = in;
  call.out = out;
  return call;
}

int64_t Before(std::span<const int64_t> counts, int rank) {
  int64_t sum = 0;
  for (int r = 0; r < rank; ++r) sum += counts[r];
  return sum;
}

}  // namespace

absl::Status Arguments::CheckRoot(int root) const {
  if (root >= 0 && root < size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("root ", root, " does not lie in a group of ", size()));
}

absl::StatusOr<CollectiveCall> Arguments::Barrier() const {
  return MakeCall(OpKind::kBarrier, ReduceOp::kNone, {}, {}, DType::kU8, 0);
}

absl::StatusOr<CollectiveCall> Arguments::AllReduce(const ConstBuffer& in, const Buffer& out,
                                                    ReduceOp op) const {
  RETURN_IF_ERROR(CheckSame(in, out));
  RETURN_IF_ERROR(CheckReduce(op, out.dtype));
  RETURN_IF_ERROR(CheckOverlap(in, out, 0));
  return MakeCall(OpKind::kAllReduce, op, in, out, in.dtype, in.count);
}

absl::StatusOr<CollectiveCall> Arguments::Reduce(const ConstBuffer& in, const Buffer& out, int root,
                                                 ReduceOp op) const {
  RETURN_IF_ERROR(CheckRoot(root));
  RETURN_IF_ERROR(CheckBuffer("in", in));
  RETURN_IF_ERROR(CheckReduce(op, in.dtype));
  if (group_.rank == root) {
    RETURN_IF_ERROR(CheckSame(in, out));
    RETURN_IF_ERROR(CheckOverlap(in, out, 0));
  }
  const Buffer kept = group_.rank == root ? out : Buffer{nullptr, 0, in.dtype};
  return MakeCall(OpKind::kReduce, op, in, kept, in.dtype, in.count, root);
}

absl::StatusOr<CollectiveCall> Arguments::ReduceScatter(const ConstBuffer& in, const Buffer& out,
                                                        ReduceOp op) const {
  RETURN_IF_ERROR(CheckParts("out", out, "in", in, size()));
  RETURN_IF_ERROR(CheckReduce(op, out.dtype));
  RETURN_IF_ERROR(CheckOverlap(out, in, group_.rank * out.count));
  return MakeCall(OpKind::kReduceScatter, op, in, out, out.dtype, out.count);
}

absl::StatusOr<CollectiveCall> Arguments::ReduceScatterV(const ConstBuffer& in, const Buffer& out,
                                                         std::span<const int64_t> counts,
                                                         ReduceOp op) const {
  RETURN_IF_ERROR(CheckCounts("counts", counts, "in", in, size()));
  RETURN_IF_ERROR(CheckBuffer("out", out));
  RETURN_IF_ERROR(CheckReduce(op, in.dtype));
  if (out.dtype != in.dtype || out.count != counts[group_.rank]) {
    return absl::InvalidArgumentError(absl::StrCat("out holds ", Text(out), ", want the ",
                                                   counts[group_.rank], " ", Text(in.dtype),
                                                   " that counts gives to this rank"));
  }
  RETURN_IF_ERROR(CheckOverlap(out, in, Before(counts, group_.rank)));
  CollectiveCall call = MakeCall(OpKind::kReduceScatterV, op, in, out, in.dtype, in.count);
  call.send_counts.assign(counts.begin(), counts.end());
  return call;
}

absl::StatusOr<CollectiveCall> Arguments::AllGather(const ConstBuffer& in,
                                                    const Buffer& out) const {
  RETURN_IF_ERROR(CheckParts("in", in, "out", out, size()));
  RETURN_IF_ERROR(CheckOverlap(in, out, group_.rank * in.count));
  return MakeCall(OpKind::kAllGather, ReduceOp::kNone, in, out, in.dtype, in.count);
}

absl::StatusOr<CollectiveCall> Arguments::AllGatherV(const ConstBuffer& in, const Buffer& out,
                                                     std::span<const int64_t> counts) const {
  RETURN_IF_ERROR(CheckCounts("counts", counts, "out", out, size()));
  RETURN_IF_ERROR(CheckBuffer("in", in));
  if (out.dtype != in.dtype || in.count != counts[group_.rank]) {
    return absl::InvalidArgumentError(absl::StrCat("in holds ", Text(in), ", want the ",
                                                   counts[group_.rank], " ", Text(out.dtype),
                                                   " that counts gives to this rank"));
  }
  RETURN_IF_ERROR(CheckOverlap(in, out, Before(counts, group_.rank)));
  CollectiveCall call =
      MakeCall(OpKind::kAllGatherV, ReduceOp::kNone, in, out, in.dtype, out.count);
  call.send_counts.assign(counts.begin(), counts.end());
  return call;
}

absl::StatusOr<CollectiveCall> Arguments::Gather(const ConstBuffer& in, const Buffer& out,
                                                 int root) const {
  RETURN_IF_ERROR(CheckRoot(root));
  RETURN_IF_ERROR(CheckBuffer("in", in));
  if (group_.rank == root) {
    RETURN_IF_ERROR(CheckParts("in", in, "out", out, size()));
    RETURN_IF_ERROR(CheckOverlap(in, out, root * in.count));
  }
  const Buffer kept = group_.rank == root ? out : Buffer{nullptr, 0, in.dtype};
  return MakeCall(OpKind::kGather, ReduceOp::kNone, in, kept, in.dtype, in.count, root);
}

absl::StatusOr<CollectiveCall> Arguments::Scatter(const ConstBuffer& in, const Buffer& out,
                                                  int root) const {
  RETURN_IF_ERROR(CheckRoot(root));
  RETURN_IF_ERROR(CheckBuffer("out", out));
  if (group_.rank == root) {
    RETURN_IF_ERROR(CheckParts("out", out, "in", in, size()));
    RETURN_IF_ERROR(CheckOverlap(out, in, root * out.count));
  }
  const ConstBuffer kept = group_.rank == root ? in : ConstBuffer(nullptr, 0, out.dtype);
  return MakeCall(OpKind::kScatter, ReduceOp::kNone, kept, out, out.dtype, out.count, root);
}

absl::StatusOr<CollectiveCall> Arguments::Broadcast(const Buffer& buffer, int root) const {
  RETURN_IF_ERROR(CheckBuffer("buffer", buffer));
  RETURN_IF_ERROR(CheckRoot(root));
  return MakeCall(OpKind::kBroadcast, ReduceOp::kNone, buffer, buffer, buffer.dtype, buffer.count,
                  root);
}

absl::StatusOr<CollectiveCall> Arguments::AllToAll(const ConstBuffer& in, const Buffer& out) const {
  RETURN_IF_ERROR(CheckSame(in, out));
  if (in.count % size() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("in holds ", Text(in), ", want as many for each of ", size(), " ranks"));
  }
  RETURN_IF_ERROR(CheckOverlap(in, out, 0, false));
  return MakeCall(OpKind::kAllToAll, ReduceOp::kNone, in, out, in.dtype, in.count / size());
}

absl::StatusOr<CollectiveCall> Arguments::AllToAllV(const ConstBuffer& in,
                                                    std::span<const int64_t> send_counts,
                                                    const Buffer& out,
                                                    std::span<const int64_t> receive_counts) const {
  RETURN_IF_ERROR(CheckCounts("send_counts", send_counts, "in", in, size()));
  RETURN_IF_ERROR(CheckCounts("receive_counts", receive_counts, "out", out, size()));
  if (in.dtype != out.dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("in holds ", Text(in.dtype), " and out ", Text(out.dtype)));
  }
  RETURN_IF_ERROR(CheckOverlap(in, out, 0, false));
  // Ranks differ in their counts, so the fingerprint has none.
  CollectiveCall call = MakeCall(OpKind::kAllToAllV, ReduceOp::kNone, in, out, in.dtype, 0);
  call.send_counts.assign(send_counts.begin(), send_counts.end());
  call.receive_counts.assign(receive_counts.begin(), receive_counts.end());
  return call;
}

absl::StatusOr<PairCalls> Arguments::Exchange(std::span<const SendTo> sends,
                                              std::span<const ReceiveFrom> receives) const {
  PairCalls pairs;
  const auto check_peer = [&](int peer) {
    if (peer >= 0 && peer < size()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("peer ", peer, " does not lie in a group of ", size()));
  };
  std::vector<ConstBuffer> to_self;
  for (const SendTo& send : sends) {
    RETURN_IF_ERROR(check_peer(send.peer));
    RETURN_IF_ERROR(CheckBuffer("what is sent", send.buffer));
    if (send.peer == group_.rank) to_self.push_back(send.buffer);
    pairs.calls.push_back(MakeCall(OpKind::kSend, ReduceOp::kNone, send.buffer, {},
                                   send.buffer.dtype, send.buffer.count, send.peer));
  }
  size_t from_self = 0;
  for (const ReceiveFrom& receive : receives) {
    RETURN_IF_ERROR(check_peer(receive.peer));
    RETURN_IF_ERROR(CheckBuffer("what is received", receive.buffer));
    pairs.calls.push_back(MakeCall(OpKind::kReceive, ReduceOp::kNone, {}, receive.buffer,
                                   receive.buffer.dtype, receive.buffer.count, receive.peer));
    if (receive.peer != group_.rank) continue;
    if (from_self < to_self.size()) {
      RETURN_IF_ERROR(CheckSame(to_self[from_self], receive.buffer));
    }
    ++from_self;
  }
  if (from_self != to_self.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(to_self.size(), " sends of this rank to itself, ", from_self, " receives"));
  }
  if (pairs.calls.empty()) return absl::InvalidArgumentError("nothing to send or receive");
  return pairs;
}

}  // namespace plinth::comm
