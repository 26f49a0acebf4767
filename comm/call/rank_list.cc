#include "plinth/comm/call/rank_list.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plinth::comm {

std::string RankList(std::span<const int> ranks) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", absl::StrJoin(ranks, ", "));
}

}  // namespace plinth::comm
