#include "plinth/hardware/probe/topology.h"

#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "absl/status/status.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::probe {
namespace {

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using TopologyPtr = std::unique_ptr<hwloc_topology, Destroy>;

// hwloc takes another root, and the promise not to ask the live CPU, from the environment only.
class HwlocRoot {
 public:
  explicit HwlocRoot(const RootFs& fs) : set_(!fs.live()) {
    if (!set_) return;
    setenv("HWLOC_FSROOT", fs.root().c_str(), 1);
    setenv("HWLOC_COMPONENTS", "linux,stop", 1);
    setenv("HWLOC_HIDE_ERRORS", "2", 1);  // our own status says it
  }
  ~HwlocRoot() {
    if (!set_) return;
    unsetenv("HWLOC_FSROOT");
    unsetenv("HWLOC_COMPONENTS");
    unsetenv("HWLOC_HIDE_ERRORS");
  }
  HwlocRoot(const HwlocRoot&) = delete;
  HwlocRoot& operator=(const HwlocRoot&) = delete;

 private:
  bool set_;
};

absl::StatusOr<TopologyPtr> Load(const RootFs& fs) {
  const HwlocRoot root(fs);
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return absl::InternalError("hwloc: cannot start");
  TopologyPtr topology(raw);
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  hwloc_topology_set_icache_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(raw) != 0) {
    return absl::InternalError("hwloc: cannot read the topology below " + fs.root());
  }
  return topology;
}

CpuList ToList(hwloc_const_bitmap_t set) {
  CpuList cpus;
  for (int i = hwloc_bitmap_first(set); i >= 0; i = hwloc_bitmap_next(set, i)) cpus.push_back(i);
  return cpus;
}

std::string KindName(hwloc_obj_cache_type_t type) {
  if (type == HWLOC_OBJ_CACHE_DATA) return "data";
  return type == HWLOC_OBJ_CACHE_INSTRUCTION ? "instruction" : "unified";
}

void AddCache(const hwloc_obj& object, std::vector<Cache>* caches) {
  const Cache cache{.level = static_cast<int>(object.attr->cache.depth),
                    .kind = KindName(object.attr->cache.type),
                    .bytes = object.attr->cache.size,
                    .line_bytes = static_cast<int>(object.attr->cache.linesize),
                    .count = 1,
                    .cpus_sharing = hwloc_bitmap_weight(object.cpuset)};
  for (Cache& known : *caches) {
    if (known.level == cache.level && known.kind == cache.kind && known.bytes == cache.bytes &&
        known.cpus_sharing == cache.cpus_sharing) {
      ++known.count;
      return;
    }
  }
  caches->push_back(cache);
}

std::vector<Cache> Caches(hwloc_topology_t topology) {
  std::vector<Cache> caches;
  for (int depth = hwloc_topology_get_depth(topology) - 1; depth >= 0; --depth) {
    if (!hwloc_obj_type_is_cache(hwloc_get_depth_type(topology, depth))) continue;
    for (hwloc_obj_t object = hwloc_get_obj_by_depth(topology, depth, 0); object != nullptr;
         object = object->next_cousin) {
      AddCache(*object, &caches);
    }
  }
  std::stable_sort(caches.begin(), caches.end(),
                   [](const Cache& a, const Cache& b) { return a.level < b.level; });
  return caches;
}

std::vector<NumaNode> NumaNodes(hwloc_topology_t topology) {
  std::vector<NumaNode> nodes;
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, object)) != nullptr) {
    nodes.push_back({.id = static_cast<int>(object->os_index),
                     .memory_bytes = object->attr->numanode.local_memory,
                     .cpus = ToList(object->cpuset)});
  }
  return nodes;
}

}  // namespace

uint64_t Topology::LastLevelCacheBytes() const {
  uint64_t total = 0;
  for (const Cache& cache : caches) {
    if (cache.level == caches.back().level) total += cache.bytes * cache.count;
  }
  return total;
}

absl::StatusOr<Topology> ReadTopology(const RootFs& fs) {
  ASSIGN_OR_RETURN(const TopologyPtr topology, Load(fs));
  return Topology{
      .sockets = std::max(0, hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_PACKAGE)),
      .cores = std::max(0, hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE)),
      .cpus = ToList(hwloc_topology_get_topology_cpuset(topology.get())),
      .caches = Caches(topology.get()),
      .numa_nodes = NumaNodes(topology.get())};
}

}  // namespace plinth::probe
