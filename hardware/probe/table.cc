#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "plinth/hardware/probe/format.h"

namespace plinth::probe {
namespace {

constexpr size_t kWrapColumn = 84;  // with the label column: below 100

// Two columns: a label on the first line of its block, blank beside the others.
class Table {
 public:
  void Row(const std::string& label, const std::string& text) {
    absl::StrAppendFormat(&text_, "%-14s%s\n", label == last_ ? "" : label, text);
    last_ = label;
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
  std::string last_;
};

std::string Count(int64_t n, const std::string& noun) {
  return absl::StrCat(n, " ", noun, n == 1 ? "" : "s");
}

std::string BytesOrUnknown(const std::optional<uint64_t>& bytes) {
  return bytes.has_value() ? FormatBytes(*bytes) : "unknown";
}

std::string OrUnknown(const std::string& text) { return text.empty() ? "unknown" : text; }

void CpuRows(const MachineReport& r, Table* table) {
  const auto threads = static_cast<int>(r.topology.cpus.size());
  const int per_core = r.topology.cores > 0 ? threads / r.topology.cores : 1;
  table->Row("CPU", OrUnknown(r.cpu.model));
  table->Row("CPU", absl::StrCat(Count(r.topology.sockets, "socket"), ", ",
                                 Count(r.topology.cores, "core"), ", ", Count(threads, "thread"),
                                 per_core > 1 ? absl::StrCat(" (SMT: ", per_core, " per core)")
                                              : std::string(" (no SMT)")));
  std::string line;
  for (const std::string& feature : r.cpu.features) {
    if (line.size() + feature.size() > kWrapColumn) {
      table->Row("Features", line);
      line.clear();
    }
    absl::StrAppend(&line, line.empty() ? "" : " ", feature);
  }
  table->Row("Features", line.empty() ? "none that matter here" : line);
}

void CacheRows(const MachineReport& r, Table* table) {
  std::vector<std::string> parts;
  for (const Cache& cache : r.topology.caches) {
    const std::string kind = cache.kind == "unified" ? "" : " " + cache.kind;
    parts.push_back(absl::StrCat("L", cache.level, kind, " ", FormatBytes(cache.bytes),
                                 cache.count > 1 ? absl::StrCat(" x ", cache.count) : ""));
  }
  table->Row("Caches", parts.empty() ? "unknown" : absl::StrJoin(parts, ", "));
  for (const NumaNode& node : r.topology.numa_nodes) {
    table->Row("NUMA",
               absl::StrCat("node ", node.id, ": ", FormatBytes(node.memory_bytes), ", CPUs ",
                            node.cpus.empty() ? "none" : FormatCpuList(node.cpus)));
  }
}

void MemoryRows(const MachineReport& r, Table* table) {
  table->Row("Memory", absl::StrCat(BytesOrUnknown(r.memory.total_bytes), ", ",
                                    BytesOrUnknown(r.memory.available_bytes), " available"));
  std::string pages = absl::StrCat("transparent: ", OrUnknown(r.memory.transparent_huge_pages));
  for (const HugePages& pool : r.memory.huge_pages) {
    absl::StrAppend(&pages, "; ", FormatBytes(pool.page_bytes), ": ", pool.total, " reserved",
                    pool.total > 0 ? absl::StrCat(", ", pool.free, " free") : "");
  }
  table->Row("Huge pages", pages);
}

void LimitRows(const MachineReport& r, Table* table) {
  const CgroupLimits& limits = r.cgroup;
  std::vector<std::string> parts;
  if (limits.cpu_quota) parts.push_back(absl::StrFormat("CPU quota %.4g", *limits.cpu_quota));
  if (limits.cpuset) parts.push_back("CPUs " + FormatCpuList(*limits.cpuset));
  if (limits.memory_bytes) parts.push_back("memory " + FormatBytes(*limits.memory_bytes));
  table->Row("Limits", absl::StrCat("cgroup ", limits.version, ": ",
                                    parts.empty() ? "nothing limited" : absl::StrJoin(parts, ", "),
                                    r.affinity ? "; affinity " + FormatCpuList(*r.affinity) : ""));
  const bool all = r.usable.cpu_count == static_cast<int>(r.usable.cpus.size());
  table->Row("Usable here",
             absl::StrCat(Count(r.usable.cpu_count, "CPU"), all ? " (" : " (out of ",
                          FormatCpuList(r.usable.cpus), "), limited by ", r.usable.limited_by,
                          "; memory ", BytesOrUnknown(r.usable.memory_available_bytes)));
}

std::string Speed(const std::optional<int64_t>& mbps) {
  if (!mbps.has_value()) return "speed unknown";
  return *mbps % 1000 == 0 ? absl::StrCat(*mbps / 1000, " Gb/s") : absl::StrCat(*mbps, " Mb/s");
}

std::string NodeSuffix(const std::optional<int>& node) {
  return node.has_value() ? absl::StrCat(", NUMA node ", *node) : "";
}

// Every container on a host adds virtual interfaces without an address: they are only counted.
void NicRows(const MachineReport& r, Table* table) {
  int silent = 0;
  for (const Nic& nic : r.nics) {
    std::string text = nic.is_virtual
                           ? "virtual"
                           : absl::StrCat(Speed(nic.speed_mbps), nic.driver.empty() ? "" : ", ",
                                          nic.driver, NodeSuffix(nic.numa_node));
    if (nic.is_virtual && nic.addresses.empty()) {
      ++silent;
      continue;
    }
    for (const std::string& address : nic.addresses) {
      if (!absl::StartsWith(address, "fe80:")) absl::StrAppend(&text, ", ", address);
    }
    table->Row("Network", absl::StrFormat("%-10s %-8s%s", nic.name, nic.state, text));
  }
  if (silent > 0) table->Row("Network", absl::StrCat(silent, " more, virtual without address"));
  if (r.nics.empty()) table->Row("Network", "none");
}

void AcceleratorRows(const MachineReport& r, Table* table) {
  if (r.accelerators.empty()) table->Row("Accelerators", "none on PCIe");
  for (const PciAccelerator& a : r.accelerators) {
    const std::string maker =
        a.vendor.empty() ? absl::StrFormat("vendor %04x", a.vendor_id) : a.vendor;
    table->Row("Accelerators",
               absl::StrFormat("%s  %s device %04x, driver %s%s%s%s", a.address, maker, a.device_id,
                               a.driver.empty() ? "none" : a.driver,
                               a.link_speed.empty() ? "" : ", " + a.link_speed,
                               a.link_lanes ? absl::StrCat(" x", *a.link_lanes) : "",
                               NodeSuffix(a.numa_node)));
  }
}

std::string VisibleName(const MachineReport& r, const VisibleDevice& device) {
  const NvidiaGpu& gpu = r.nvidia.gpus[device.gpu];
  return device.mig < 0 ? absl::StrCat("GPU ", device.gpu)
                        : absl::StrCat("GPU ", device.gpu, " ", gpu.mig_devices[device.mig].uuid);
}

void NvidiaRows(const MachineReport& r, Table* table) {
  if (!r.nvidia.problem.empty()) {
    table->Row("NVIDIA", r.nvidia.problem);
    return;
  }
  table->Row("NVIDIA", absl::StrCat("driver ", OrUnknown(r.nvidia.driver_version), ", ",
                                    Count(static_cast<int64_t>(r.nvidia.gpus.size()), "GPU")));
  for (size_t i = 0; i < r.nvidia.gpus.size(); ++i) {
    const NvidiaGpu& gpu = r.nvidia.gpus[i];
    table->Row("NVIDIA", absl::StrFormat("GPU %d  %s, %s, compute %d.%d, %s  %s", i, gpu.name,
                                         FormatBytes(gpu.memory_bytes), gpu.compute_major,
                                         gpu.compute_minor, gpu.pci_address, gpu.uuid));
    for (const MigDevice& mig : gpu.mig_devices) {
      table->Row("NVIDIA",
                 absl::StrCat("       slice ", mig.uuid, ", ", FormatBytes(mig.memory_bytes)));
    }
  }
  std::vector<std::string> names;
  for (const VisibleDevice& device : r.visible) names.push_back(VisibleName(r, device));
  const std::string variable = r.cuda_visible_devices
                                   ? absl::StrCat("=\"", *r.cuda_visible_devices, "\"")
                                   : std::string(" not set");
  table->Row("CUDA sees", absl::StrCat(names.empty() ? "nothing" : absl::StrJoin(names, ", "),
                                       " (CUDA_VISIBLE_DEVICES", variable, ")"));
}

}  // namespace

std::string FormatBytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int unit = 0;
  auto value = static_cast<double>(bytes);
  while (value >= 1024 && unit < 6) {
    value /= 1024;
    ++unit;
  }
  const std::string number = absl::StrFormat("%.1f", value);
  const bool whole = number.ends_with(".0");
  return absl::StrCat(whole ? number.substr(0, number.size() - 2) : number, " ", kUnits[unit]);
}

std::string ToTable(const MachineReport& report) {
  Table table;
  table.Row("Machine",
            absl::StrCat(OrUnknown(report.hostname), ", Linux ", OrUnknown(report.kernel)));
  CpuRows(report, &table);
  CacheRows(report, &table);
  MemoryRows(report, &table);
  LimitRows(report, &table);
  NicRows(report, &table);
  AcceleratorRows(report, &table);
  NvidiaRows(report, &table);
  return table.Take();
}

}  // namespace plinth::probe
