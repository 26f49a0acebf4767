#include "plinth/comm/engine/note.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plinth/comm/call/verdict.h"

namespace plinth::comm {
namespace {

// Numbers of a list that a message shows.
constexpr size_t kShownNumbers = 16;

bool CountsAreLists(OpKind op) {
  return op == OpKind::kReduceScatterV || op == OpKind::kAllGatherV || op == OpKind::kAllToAllV;
}

// Index of what most ranks share; the first such.
template <typename Same>
size_t MostCommon(size_t size, const Same& same) {
  size_t best = 0;
  int64_t best_votes = 0;
  for (size_t i = 0; i < size; ++i) {
    int64_t votes = 0;
    for (size_t j = 0; j < size; ++j) votes += same(i, j) ? 1 : 0;
    if (votes > best_votes) {
      best = i;
      best_votes = votes;
    }
  }
  return best;
}

// "rank 2 <did this>, but the other 3 ranks <did that>"; nothing when all are the same.
template <typename Same, typename Tell>
std::optional<std::string> DescribeOdd(size_t size, const GroupInfo& group, const Same& same,
                                       const Tell& tell) {
  if (size == 0) return std::nullopt;
  const size_t common = MostCommon(size, same);
  std::vector<std::string> odd;
  for (size_t rank = 0; rank < size; ++rank) {
    if (same(rank, common)) continue;
    odd.push_back(absl::StrCat(RankText(static_cast<int>(rank), &group), " ", tell(rank)));
  }
  if (odd.empty()) return std::nullopt;
  const size_t others = size - odd.size();
  return absl::StrCat(absl::StrJoin(odd, ", "), ", but ",
                      others == 1 ? RankText(static_cast<int>(common), &group)
                                  : absl::StrCat("the other ", others, " ranks"),
                      " ", tell(common));
}

std::string ListText(std::span<const int64_t> list) {
  const auto shown = list.first(std::min(list.size(), kShownNumbers));
  return absl::StrCat(absl::StrJoin(shown.begin(), shown.end(), ", "),
                      shown.size() < list.size() ? ", ..." : "");
}

}  // namespace

NoteHead MakeHead(const CollectiveCall& call) {
  NoteHead head;
  head.print = call.print;
  head.line = call.site.line;
  const size_t length = std::strlen(call.site.file);
  const size_t kept = std::min(length, sizeof(head.file));
  std::memcpy(head.file, call.site.file + length - kept, kept);
  return head;
}

std::string ToString(const NoteHead& head, const GroupInfo& group) {
  const std::string_view file(head.file, strnlen(head.file, sizeof(head.file)));
  return absl::StrCat(ToString(head.print, group.name), SiteText(file, head.line));
}

bool SameCall(const NoteHead& a, const NoteHead& b) {
  if (a.print == b.print) return true;
  // The lists themselves say more than their sums.
  Fingerprint print = a.print;
  if (CountsAreLists(print.op)) print.count = b.print.count;
  return print == b.print;
}

std::optional<std::string> DescribeMismatch(std::span<const NoteHead> heads,
                                            const GroupInfo& group) {
  return DescribeOdd(
      heads.size(), group, [&](size_t a, size_t b) { return SameCall(heads[a], heads[b]); },
      [&](size_t rank) { return absl::StrCat("called ", ToString(heads[rank], group)); });
}

std::optional<std::string> DescribeListMismatch(std::span<const NoteHead> heads,
                                                std::span<const std::vector<int64_t>> lists,
                                                const GroupInfo& group) {
  return DescribeOdd(
      heads.size(), group, [&](size_t a, size_t b) { return lists[a] == lists[b]; },
      [&](size_t rank) {
        const char* kind =
            CountsAreLists(heads[rank].print.op) ? "passed counts " : "passed ranks ";
        return absl::StrCat(kind, ListText(lists[rank]), " to ", ToString(heads[rank], group));
      });
}

std::optional<std::string> DescribePairMismatch(std::span<const NoteHead> heads,
                                                std::span<const std::vector<int64_t>> lists,
                                                const GroupInfo& group) {
  const size_t size = lists.size();
  for (size_t from = 0; from < size; ++from) {
    for (size_t to = 0; to < size; ++to) {
      const int64_t sent = lists[from][to];
      const int64_t expected = lists[to][size + from];
      if (sent == expected) continue;
      return absl::StrCat(RankText(static_cast<int>(from), &group), " sends ", sent,
                          " elements to ", RankText(static_cast<int>(to), &group), " in ",
                          ToString(heads[from], group), ", but ",
                          RankText(static_cast<int>(to), &group), " expects ", expected, " in ",
                          ToString(heads[to], group));
    }
  }
  return std::nullopt;
}

}  // namespace plinth::comm
