// A machine report as a table for people and as JSON for programs.
#ifndef PLINTH_HARDWARE_PROBE_FORMAT_H_
#define PLINTH_HARDWARE_PROBE_FORMAT_H_

#include <cstdint>
#include <string>

#include "plinth/hardware/probe/probe.h"

namespace plinth::probe {

// Lines of "Label  text", ending with a newline.
std::string ToTable(const MachineReport& report);

// One JSON object on one line, no newline. The schema is stable: within "plinth.machine.v1" keys
// are added, never renamed or removed. Unknown values are null, sizes are bytes, CPU sets are
// strings in the kernel's notation ("0-3,8"), identifiers of PCI are "0x10de".
//
//   schema, hostname, kernel
//   cpu       {model, sockets, cores, threads, online, features[]}
//   caches[]  {level, kind, bytes, line_bytes, count, cpus_sharing}
//   numa[]    {id, memory_bytes, cpus}
//   memory    {total_bytes, available_bytes, transparent_huge_pages,
//              huge_pages[]{page_bytes, total, free}}
//   cgroup    {version, cpu_quota, cpuset, memory_bytes}        null: no limit
//   affinity
//   usable    {cpus, cpu_count, limited_by, memory_bytes, memory_available_bytes}
//   nics[]    {name, state, virtual, driver, mac, speed_mbps, mtu_bytes, numa_node, addresses[]}
//   accelerators[] {address, vendor_id, device_id, class, vendor, driver, link_speed, link_lanes,
//              numa_node}
//   nvidia    {driver_version, source, problem, cuda_visible_devices,
//              gpus[]{uuid, name, pci_address, memory_bytes, compute_capability, mig_enabled,
//              mig_devices[]{uuid, gpu_instance, compute_instance, memory_bytes}},
//              visible[]{gpu, mig}}                             indices; mig null: the whole GPU
std::string ToJson(const MachineReport& report);

// "23.5 GiB", "48 KiB": at most one decimal, exact powers without.
std::string FormatBytes(uint64_t bytes);

}  // namespace plinth::probe

#endif  // PLINTH_HARDWARE_PROBE_FORMAT_H_
