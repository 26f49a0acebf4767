// How messages name several ranks.
#ifndef PLINTH_COMM_CALL_RANK_LIST_H_
#define PLINTH_COMM_CALL_RANK_LIST_H_

#include <span>
#include <string>

namespace plinth::comm {

// As all messages name ranks: "rank 3", "ranks 1, 3".
std::string RankList(std::span<const int> ranks);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_CALL_RANK_LIST_H_
