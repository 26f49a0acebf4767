// Which ranks a group has and what messages call it.
#ifndef PLINTH_COMM_CALL_GROUP_H_
#define PLINTH_COMM_CALL_GROUP_H_

#include <string>
#include <vector>

namespace plinth::comm {

struct GroupInfo {
  std::string name;  // "dp"; empty for the group that a launch starts with
  int rank = 0;      // this process's, within the group
  // By rank of the group: the rank that the launcher gave. Messages name ranks by it, as logs
  // and process lists do.
  std::vector<int> world_ranks;

  int size() const { return static_cast<int>(world_ranks.size()); }
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_CALL_GROUP_H_
