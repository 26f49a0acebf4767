#include "plinth/comm/call/group.h"

#include <algorithm>

namespace plinth::comm {

int GroupInfo::RanksPerHost() const {
  const auto first_other = std::find_if(hosts.begin(), hosts.end(),
                                        [this](uint64_t host) { return host != hosts.front(); });
  const auto per_host = static_cast<size_t>(first_other - hosts.begin());
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    for (size_t other = 0; other < rank; ++other) {
      if ((hosts[rank] == hosts[other]) != (rank / per_host == other / per_host)) return 1;
    }
  }
  return std::max(1, static_cast<int>(per_host));
}

}  // namespace plinth::comm
