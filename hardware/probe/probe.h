// What this machine is, and how much of it this process may use.
//
//   ASSIGN_OR_RETURN(probe::MachineReport machine, probe::Probe({}));
//   StartWorkers(machine.usable.cpu_count, machine.usable.cpus);
//
// The whole machine is reported (sockets, caches, NUMA, memory, NICs, accelerators), then what
// control groups and the affinity mask leave of it: on a 64-CPU host, a container with a quota
// of 4 CPUs gets `usable.cpu_count` 4, and 64 threads there would only wait for each other.
#ifndef PLINTH_HARDWARE_PROBE_PROBE_H_
#define PLINTH_HARDWARE_PROBE_PROBE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plinth/hardware/probe/cgroup.h"
#include "plinth/hardware/probe/cpu_list.h"
#include "plinth/hardware/probe/devices.h"
#include "plinth/hardware/probe/host.h"
#include "plinth/hardware/probe/nvidia.h"
#include "plinth/hardware/probe/topology.h"

namespace plinth::probe {

struct ProbeOptions {
  // /proc and /sys are read below it. With another root than "/", nothing is asked of the
  // live system: facts that no file holds are those given here, or unknown.
  std::string root = "/";
  // Instead of asking the live system; set them to test or to describe another machine.
  std::optional<CpuList> affinity;
  std::optional<NvidiaTable> nvidia;
  std::optional<std::string> cuda_visible_devices;
};

// What is left for this process.
struct Usable {
  CpuList cpus;            // online, in the cpuset and in the affinity mask; never empty
  int cpu_count = 0;       // of them to keep busy: the quota rounded down, at least 1
  std::string limited_by;  // "nothing", "CPU quota 7.65", "cpuset" or "affinity": the last
  std::optional<uint64_t> memory_bytes;            // of the machine, or the tightest limit
  std::optional<uint64_t> memory_available_bytes;  // now; a limit's own use is not subtracted
};

struct MachineReport {
  std::string hostname;
  std::string kernel;
  CpuInfo cpu;
  Topology topology;
  Memory memory;
  CgroupLimits cgroup;
  std::optional<CpuList> affinity;
  Usable usable;
  std::vector<Nic> nics;
  std::vector<PciAccelerator> accelerators;
  NvidiaTable nvidia;
  std::optional<std::string> cuda_visible_devices;
  std::vector<VisibleDevice> visible;  // into nvidia.gpus, in CUDA's order
};

// Errors: kNotFound when `root` is no directory; kInvalidArgument naming the file when one that
// decides how much to use is malformed; kFailedPrecondition when the limits leave no CPU.
// Lists that only inform (NICs, PCIe, GPUs) never fail the probe.
// Threads: with the default root, thread-safe; else see ReadTopology.
// Cost: tens of milliseconds; up to a second more where NVIDIA GPUs have to wake.
absl::StatusOr<MachineReport> Probe(const ProbeOptions& options);

// Online CPUs of the live machine that the affinity mask allows now.
absl::StatusOr<CpuList> LiveAffinity();

// The arithmetic behind `MachineReport::usable`. Errors as Probe.
absl::StatusOr<Usable> ComputeUsable(const CpuList& online, const CgroupLimits& cgroup,
                                     const std::optional<CpuList>& affinity, const Memory& memory);

}  // namespace plinth::probe

#endif  // PLINTH_HARDWARE_PROBE_PROBE_H_
