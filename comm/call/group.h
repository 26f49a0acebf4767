// Which ranks a group has and what messages call it.
#ifndef PLINTH_COMM_CALL_GROUP_H_
#define PLINTH_COMM_CALL_GROUP_H_

#include <cstdint>
#include <string>
#include <vector>

namespace plinth::comm {

struct GroupInfo {
  std::string name;  // "dp"; empty for the group that a launch starts with
  int rank = 0;      // this process's, within the group
  // By rank of the group: the rank that the launcher gave. Messages name ranks by it, as logs
  // and process lists do.
  std::vector<int> world_ranks;
  // By rank of the group: equal for ranks on one host, which can share memory. Equal on all ranks.
  std::vector<uint64_t> hosts;

  int size() const { return static_cast<int>(world_ranks.size()); }
  // As Problem::ranks_per_host: k where ranks h * k .. lie on a host of their own for each h, fewer
  // on the last at most. 1 where hosts are not laid out so: each rank as if alone.
  int RanksPerHost() const;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_CALL_GROUP_H_
