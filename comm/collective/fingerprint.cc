#include "plinth/comm/collective/fingerprint.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plinth::comm {
namespace {

std::string OpText(OpKind op) {
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
  }
  return absl::StrCat("operation ", static_cast<int>(op));
}

// A peer of another build may send a code that this one does not know.
std::string DTypeText(DType dtype) {
  const auto code = static_cast<uint8_t>(dtype);
  const bool known =
      code >= static_cast<uint8_t>(DType::kF32) && code <= static_cast<uint8_t>(DType::kBool);
  return known ? std::string(DTypeName(dtype)) : absl::StrCat("dtype ", code);
}

// Index of the fingerprint that most ranks share; the first such.
size_t MostCommon(std::span<const Fingerprint> prints) {
  size_t best = 0;
  int64_t best_votes = 0;
  for (size_t i = 0; i < prints.size(); ++i) {
    const int64_t votes = std::count(prints.begin(), prints.end(), prints[i]);
    if (votes > best_votes) {
      best = i;
      best_votes = votes;
    }
  }
  return best;
}

}  // namespace

std::string ToString(const Fingerprint& print) {
  const std::string head = absl::StrCat(OpText(print.op), " #", print.sequence);
  if (print.op == OpKind::kBarrier) return head;
  std::string detail = absl::StrCat(DTypeText(print.dtype), " x ", print.count);
  // Sum is what an all-reduce is unless told otherwise.
  if (print.reduce != ReduceOp::kNone && print.reduce != ReduceOp::kSum) {
    absl::StrAppend(&detail, ", ", std::string(ReduceOpName(print.reduce)));
  }
  if (print.root >= 0) absl::StrAppend(&detail, ", root ", print.root);
  return absl::StrCat(head, " (", detail, ")");
}

std::optional<std::string> DescribeMismatch(std::span<const Fingerprint> prints) {
  if (prints.empty()) return std::nullopt;
  const Fingerprint& common = prints[MostCommon(prints)];
  std::vector<std::string> odd;
  for (size_t rank = 0; rank < prints.size(); ++rank) {
    if (prints[rank] == common) continue;
    odd.push_back(absl::StrCat("rank ", rank, " called ", ToString(prints[rank])));
  }
  if (odd.empty()) return std::nullopt;
  const size_t others = prints.size() - odd.size();
  return absl::StrCat(absl::StrJoin(odd, ", "), ", but ",
                      others == 1 ? absl::StrCat("rank ", MostCommon(prints))
                                  : absl::StrCat("the other ", others, " ranks"),
                      " called ", ToString(common));
}

}  // namespace plinth::comm
