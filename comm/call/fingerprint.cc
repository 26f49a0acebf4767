#include "plinth/comm/call/fingerprint.h"

#include "absl/strings/str_cat.h"

namespace plinth::comm {
namespace {

// A peer of another build may send a code that this one does not know.
std::string DTypeText(DType dtype) {
  const auto code = static_cast<uint8_t>(dtype);
  const bool known =
      code >= static_cast<uint8_t>(DType::kF32) && code <= static_cast<uint8_t>(DType::kBool);
  return known ? std::string(DTypeName(dtype)) : absl::StrCat("dtype ", code);
}

}  // namespace

std::string OpName(OpKind op) {
  switch (op) {
    case OpKind::kBarrier:
      return "barrier";
    case OpKind::kAllReduce:
      return "all_reduce";
    case OpKind::kReduceScatter:
      return "reduce_scatter";
    case OpKind::kAllGather:
      return "all_gather";
    case OpKind::kBroadcast:
      return "broadcast";
    case OpKind::kReduce:
      return "reduce";
    case OpKind::kGather:
      return "gather";
    case OpKind::kScatter:
      return "scatter";
    case OpKind::kAllToAll:
      return "all_to_all";
    case OpKind::kReduceScatterV:
      return "reduce_scatter_v";
    case OpKind::kAllGatherV:
      return "all_gather_v";
    case OpKind::kAllToAllV:
      return "all_to_all_v";
    case OpKind::kSend:
      return "send";
    case OpKind::kReceive:
      return "receive";
    case OpKind::kSplit:
      return "split";
    case OpKind::kAllocate:
      return "allocate";
  }
  return absl::StrCat("operation ", static_cast<int>(op));
}

std::string ToString(const Fingerprint& print, std::string_view group) {
  std::string head = absl::StrCat(OpName(print.op), " #", print.sequence);
  if (!group.empty()) absl::StrAppend(&head, " of group ", std::string(group));
  if (print.op == OpKind::kBarrier || print.op == OpKind::kSplit || print.op == OpKind::kAllocate) {
    return head;
  }
  std::string detail = DTypeText(print.dtype);
  // Ranks have counts of their own in an all_to_all_v.
  if (print.op != OpKind::kAllToAllV) absl::StrAppend(&detail, " x ", print.count);
  // Sum is what a reduction is unless told otherwise.
  if (print.reduce != ReduceOp::kNone && print.reduce != ReduceOp::kSum) {
    absl::StrAppend(&detail, ", ", std::string(ReduceOpName(print.reduce)));
  }
  if (print.op == OpKind::kSend || print.op == OpKind::kReceive) {
    absl::StrAppend(&detail, print.op == OpKind::kSend ? ", to rank " : ", from rank ", print.root);
  } else if (print.root >= 0) {
    absl::StrAppend(&detail, ", root ", print.root);
  }
  return absl::StrCat(head, " (", detail, ")");
}

}  // namespace plinth::comm
