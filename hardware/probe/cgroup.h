// What the control groups of this process allow it to use.
//
// A container's share of a machine lies in its cgroup and in every ancestor of it that is
// visible, under two generations of file names:
//
//                 v1 (one mount per controller)              v2 (one tree)
//   CPU time      cpu.cfs_quota_us / cpu.cfs_period_us       cpu.max
//   CPUs          cpuset.effective_cpus, cpuset.cpus         cpuset.cpus.effective, cpuset.cpus
//   memory        memory.limit_in_bytes                      memory.max, memory.high
//
// The tightest of all levels holds. Hybrid machines mount both: each controller is read
// where it is attached.
#ifndef PLINTH_HARDWARE_PROBE_CGROUP_H_
#define PLINTH_HARDWARE_PROBE_CGROUP_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "plinth/hardware/probe/cpu_list.h"
#include "plinth/hardware/probe/root_fs.h"

namespace plinth::probe {

struct CgroupLimits {
  // "v1", "v2", "v1+v2", or "none" where no control groups are mounted.
  std::string version = "none";
  // CPUs' worth of time per period, as granted: 7.65 for 765000/100000.
  std::optional<double> cpu_quota;
  std::optional<CpuList> cpuset;
  std::optional<uint64_t> memory_bytes;
};

// Reads /proc/self/{cgroup,mountinfo} and the files above. A missing file is "no limit" (the
// root group has none); an unreadable or malformed one is an error that names it, because
// guessing would use what this process may not use.
absl::StatusOr<CgroupLimits> ReadCgroupLimits(const RootFs& fs);

}  // namespace plinth::probe

#endif  // PLINTH_HARDWARE_PROBE_CGROUP_H_
