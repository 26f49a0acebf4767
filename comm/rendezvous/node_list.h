// Slurm's short forms of lists: which hosts a step runs on, and how many tasks each has.
#ifndef PLINTH_COMM_RENDEZVOUS_NODE_LIST_H_
#define PLINTH_COMM_RENDEZVOUS_NODE_LIST_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace plinth::comm {

// More names or tasks than this are taken for a mistake.
inline constexpr int kMostNodes = 1 << 16;

// "n[1-3,07-09],gpu5" is n1 n2 n3 n07 n08 n09 gpu5, in this order. Several brackets in one name
// multiply: "r[1-2]n[1-2]" is r1n1 r1n2 r2n1 r2n2. A range pads to the digits of its first
// number. kInvalidArgument tells what is wrong at which place; the list is never empty.
absl::StatusOr<std::vector<std::string>> ExpandNodeList(std::string_view text);

// "4(x2),3" is 4 4 3: tasks of each node, in the order of the node list, each above zero.
absl::StatusOr<std::vector<int>> ExpandTaskCounts(std::string_view text);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_RENDEZVOUS_NODE_LIST_H_
