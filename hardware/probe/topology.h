// Sockets, cores, caches and NUMA nodes, as hwloc finds them.
#ifndef PLINTH_HARDWARE_PROBE_TOPOLOGY_H_
#define PLINTH_HARDWARE_PROBE_TOPOLOGY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plinth/hardware/probe/cpu_list.h"
#include "plinth/hardware/probe/root_fs.h"

namespace plinth::probe {

// Caches of one level and kind; machines with unequal ones list each size apart.
struct Cache {
  int level = 0;
  std::string kind;  // "data", "instruction" or "unified"
  uint64_t bytes = 0;
  int line_bytes = 0;
  int count = 0;
  int cpus_sharing = 0;  // logical CPUs behind one of them
};

struct NumaNode {
  int id = 0;
  uint64_t memory_bytes = 0;
  CpuList cpus;
};

struct Topology {
  int sockets = 0;
  int cores = 0;
  CpuList cpus;  // every online logical CPU, allowed to this process or not
  std::vector<Cache> caches;
  std::vector<NumaNode> numa_nodes;

  // Bytes of all last-level caches together; 0 when unknown.
  uint64_t LastLevelCacheBytes() const;
};

// Errors: kInternal when hwloc cannot load. Cost: milliseconds, growing with the machine.
// Threads: a root other than "/" is passed to hwloc through the process environment, so such
// a call must not run beside others that read or change the environment.
absl::StatusOr<Topology> ReadTopology(const RootFs& fs);

}  // namespace plinth::probe

#endif  // PLINTH_HARDWARE_PROBE_TOPOLOGY_H_
