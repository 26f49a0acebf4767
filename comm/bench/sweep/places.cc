#include "plinth/comm/bench/sweep/places.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {
namespace {

// Where a rank runs; plain bytes on the wire.
struct Place {
  char host[64] = {};
  cpu_set_t cpus = {};
};

absl::StatusOr<std::vector<Place>> GatherPlaces(Communicator& comm) {
  Place own;
  if (gethostname(own.host, sizeof(own.host) - 1) != 0) {
    return absl::ErrnoToStatus(errno, "gethostname");
  }
  if (sched_getaffinity(0, sizeof(own.cpus), &own.cpus) != 0) {
    return absl::ErrnoToStatus(errno, "sched_getaffinity");
  }
  std::vector<Place> places(comm.size());
  RETURN_IF_ERROR(comm.AllGather(
      {&own, sizeof(own), DType::kU8},
      {places.data(), static_cast<int64_t>(places.size() * sizeof(Place)), DType::kU8}));
  return places;
}

}  // namespace

absl::Status DescribePlaces(Communicator& comm, RunInfo& info) {
  ASSIGN_OR_RETURN(const std::vector<Place> places, GatherPlaces(comm));
  info.ranks = comm.size();
  std::vector<cpu_set_t> cpus;
  std::vector<int> ranks;
  for (const Place& place : places) {
    const auto found = std::find(info.hosts.begin(), info.hosts.end(), place.host);
    const size_t host = found - info.hosts.begin();
    if (found == info.hosts.end()) {
      info.hosts.push_back(place.host);
      cpus.push_back({});
      ranks.push_back(0);
    }
    CPU_OR(&cpus[host], &cpus[host], &place.cpus);
    ++ranks[host];
  }
  info.plan.cpu_for_each_rank = true;
  for (size_t host = 0; host < cpus.size(); ++host) {
    info.cpus += CPU_COUNT(&cpus[host]);
    info.plan.cpu_for_each_rank &= CPU_COUNT(&cpus[host]) >= ranks[host];
  }
  return absl::OkStatus();
}

}  // namespace plinth::comm
