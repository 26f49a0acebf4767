#include <boost/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "plinth/hardware/probe/format.h"

namespace plinth::probe {
namespace {

namespace json = boost::json;

template <typename T>
json::value OrNull(const std::optional<T>& value) {
  return value.has_value() ? json::value(*value) : json::value(nullptr);
}
json::value CpusOrNull(const std::optional<CpuList>& cpus) {
  return cpus.has_value() ? json::value(FormatCpuList(*cpus)) : json::value(nullptr);
}

template <typename T, typename ToObject>
json::array Array(const std::vector<T>& items, ToObject to_object) {
  json::array out;
  for (const T& item : items) out.push_back(to_object(item));
  return out;
}

json::object Cpu(const MachineReport& r) {
  return {{"model", r.cpu.model},
          {"sockets", r.topology.sockets},
          {"cores", r.topology.cores},
          {"threads", r.topology.cpus.size()},
          {"online", FormatCpuList(r.topology.cpus)},
          {"features", json::value_from(r.cpu.features)}};
}

json::object CacheObject(const Cache& c) {
  return {{"level", c.level},           {"kind", c.kind},   {"bytes", c.bytes},
          {"line_bytes", c.line_bytes}, {"count", c.count}, {"cpus_sharing", c.cpus_sharing}};
}

json::object MemoryObject(const Memory& m) {
  return {
      {"total_bytes", OrNull(m.total_bytes)},
      {"available_bytes", OrNull(m.available_bytes)},
      {"transparent_huge_pages", m.transparent_huge_pages},
      {"huge_pages", Array(m.huge_pages, [](const HugePages& p) {
         return json::object{{"page_bytes", p.page_bytes}, {"total", p.total}, {"free", p.free}};
       })}};
}

json::object UsableObject(const Usable& u) {
  return {{"cpus", FormatCpuList(u.cpus)},
          {"cpu_count", u.cpu_count},
          {"limited_by", u.limited_by},
          {"memory_bytes", OrNull(u.memory_bytes)},
          {"memory_available_bytes", OrNull(u.memory_available_bytes)}};
}

json::object NicObject(const Nic& n) {
  return {{"name", n.name},
          {"state", n.state},
          {"virtual", n.is_virtual},
          {"driver", n.driver},
          {"mac", n.mac},
          {"speed_mbps", OrNull(n.speed_mbps)},
          {"mtu_bytes", OrNull(n.mtu_bytes)},
          {"numa_node", OrNull(n.numa_node)},
          {"addresses", json::value_from(n.addresses)}};
}

json::object AcceleratorObject(const PciAccelerator& a) {
  return {{"address", a.address},
          {"vendor_id", absl::StrFormat("0x%04x", a.vendor_id)},
          {"device_id", absl::StrFormat("0x%04x", a.device_id)},
          {"class", absl::StrFormat("0x%06x", a.pci_class)},
          {"vendor", a.vendor},
          {"driver", a.driver},
          {"link_speed", a.link_speed},
          {"link_lanes", OrNull(a.link_lanes)},
          {"numa_node", OrNull(a.numa_node)}};
}

json::object GpuObject(const NvidiaGpu& g) {
  return {{"uuid", g.uuid},
          {"name", g.name},
          {"pci_address", g.pci_address},
          {"memory_bytes", g.memory_bytes},
          {"compute_capability", absl::StrCat(g.compute_major, ".", g.compute_minor)},
          {"mig_enabled", g.mig_enabled},
          {"mig_devices", Array(g.mig_devices, [](const MigDevice& m) {
             return json::object{{"uuid", m.uuid},
                                 {"gpu_instance", m.gpu_instance},
                                 {"compute_instance", m.compute_instance},
                                 {"memory_bytes", m.memory_bytes}};
           })}};
}

json::object NvidiaObject(const MachineReport& r) {
  return {{"driver_version", r.nvidia.driver_version},
          {"source", r.nvidia.source},
          {"problem", r.nvidia.problem},
          {"cuda_visible_devices", OrNull(r.cuda_visible_devices)},
          {"gpus", Array(r.nvidia.gpus, GpuObject)},
          {"visible", Array(r.visible, [](const VisibleDevice& v) {
             return json::object{{"gpu", v.gpu},
                                 {"mig", v.mig < 0 ? json::value(nullptr) : json::value(v.mig)}};
           })}};
}

}  // namespace

std::string ToJson(const MachineReport& r) {
  const json::object report = {{"schema", "plinth.machine.v1"},
                               {"hostname", r.hostname},
                               {"kernel", r.kernel},
                               {"cpu", Cpu(r)},
                               {"caches", Array(r.topology.caches, CacheObject)},
                               {"numa", Array(r.topology.numa_nodes,
                                              [](const NumaNode& n) {
                                                return json::object{
                                                    {"id", n.id},
                                                    {"memory_bytes", n.memory_bytes},
                                                    {"cpus", FormatCpuList(n.cpus)}};
                                              })},
                               {"memory", MemoryObject(r.memory)},
                               {"cgroup",
                                {{"version", r.cgroup.version},
                                 {"cpu_quota", OrNull(r.cgroup.cpu_quota)},
                                 {"cpuset", CpusOrNull(r.cgroup.cpuset)},
                                 {"memory_bytes", OrNull(r.cgroup.memory_bytes)}}},
                               {"affinity", CpusOrNull(r.affinity)},
                               {"usable", UsableObject(r.usable)},
                               {"nics", Array(r.nics, NicObject)},
                               {"accelerators", Array(r.accelerators, AcceleratorObject)},
                               {"nvidia", NvidiaObject(r)}};
  return json::serialize(report);
}

}  // namespace plinth::probe
