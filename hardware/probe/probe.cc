#include "plinth/hardware/probe/probe.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::probe {
namespace {

std::string ListOrAll(const std::optional<CpuList>& cpus) {
  return cpus.has_value() ? absl::StrCat("\"", FormatCpuList(*cpus), "\"") : "not limited";
}

void ComputeMemory(const CgroupLimits& cgroup, const Memory& memory, Usable* usable) {
  usable->memory_bytes = memory.total_bytes;
  usable->memory_available_bytes = memory.available_bytes;
  if (!cgroup.memory_bytes.has_value()) return;
  for (std::optional<uint64_t>* bytes : {&usable->memory_bytes, &usable->memory_available_bytes}) {
    *bytes = std::min(bytes->value_or(*cgroup.memory_bytes), *cgroup.memory_bytes);
  }
}

absl::Status ReadNames(const RootFs& fs, MachineReport* report) {
  ASSIGN_OR_RETURN(const std::optional<std::string> hostname,
                   fs.ReadIfPresent("/proc/sys/kernel/hostname"));
  ASSIGN_OR_RETURN(const std::optional<std::string> kernel,
                   fs.ReadIfPresent("/proc/sys/kernel/osrelease"));
  report->hostname = hostname.value_or("");
  report->kernel = kernel.value_or("");
  return absl::OkStatus();
}

void ReadNvidia(const RootFs& fs, const ProbeOptions& options, MachineReport* report) {
  if (options.nvidia.has_value()) {
    report->nvidia = *options.nvidia;
  } else if (fs.live()) {
    report->nvidia = ReadNvidiaTable();
  } else {
    report->nvidia.problem = "not asked: only the live machine's driver can answer";
  }
  report->cuda_visible_devices = options.cuda_visible_devices;
  const char* variable = fs.live() ? std::getenv("CUDA_VISIBLE_DEVICES") : nullptr;
  if (!report->cuda_visible_devices && variable != nullptr) {
    report->cuda_visible_devices = variable;
  }
  report->visible = VisibleDevices(
      report->nvidia.gpus, report->cuda_visible_devices && !report->nvidia.already_filtered
                               ? std::optional<std::string_view>(*report->cuda_visible_devices)
                               : std::nullopt);
}

}  // namespace

absl::StatusOr<CpuList> LiveAffinity() {
  // The kernel refuses a mask smaller than its own with EINVAL; 64 Ki CPUs are beyond any.
  for (int capacity = 1024; capacity <= 65536; capacity *= 8) {
    cpu_set_t* mask = CPU_ALLOC(capacity);
    const size_t bytes = CPU_ALLOC_SIZE(capacity);
    const int error = sched_getaffinity(0, bytes, mask) == 0 ? 0 : errno;
    CpuList cpus;
    for (int cpu = 0; error == 0 && cpu < capacity; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, mask)) cpus.push_back(cpu);
    }
    CPU_FREE(mask);
    if (error == 0) return cpus;
    if (error != EINVAL) return absl::ErrnoToStatus(error, "sched_getaffinity");
  }
  return absl::InternalError("sched_getaffinity: the kernel's mask holds more than 65536 CPUs");
}

absl::StatusOr<Usable> ComputeUsable(const CpuList& online, const CgroupLimits& cgroup,
                                     const std::optional<CpuList>& affinity, const Memory& memory) {
  Usable usable{.cpus = online, .limited_by = "nothing"};
  const auto narrow = [&](const std::optional<CpuList>& allowed, const char* reason) {
    if (!allowed.has_value()) return;
    CpuList both = Intersect(usable.cpus, *allowed);
    if (both.size() < usable.cpus.size()) usable.limited_by = reason;
    usable.cpus = std::move(both);
  };
  narrow(cgroup.cpuset, "cpuset");
  narrow(affinity, "affinity");
  if (usable.cpus.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no CPU is left to use: online \"", FormatCpuList(online), "\", cpuset ",
                     ListOrAll(cgroup.cpuset), ", affinity ", ListOrAll(affinity)));
  }
  usable.cpu_count = static_cast<int>(usable.cpus.size());
  // Rounded down: a thread more than the quota feeds would make all of them wait in turn.
  if (cgroup.cpu_quota.has_value() && *cgroup.cpu_quota < usable.cpu_count) {
    usable.cpu_count = std::max(1, static_cast<int>(std::floor(*cgroup.cpu_quota)));
    usable.limited_by = absl::StrFormat("CPU quota %.4g", *cgroup.cpu_quota);
  }
  ComputeMemory(cgroup, memory, &usable);
  return usable;
}

absl::StatusOr<MachineReport> Probe(const ProbeOptions& options) {
  const RootFs fs(options.root);
  if (!fs.IsDirectory("/")) {
    return absl::NotFoundError(absl::StrCat("root ", options.root, ": no such directory"));
  }
  MachineReport report;
  RETURN_IF_ERROR(ReadNames(fs, &report));
  ASSIGN_OR_RETURN(report.cpu, ReadCpuInfo(fs));
  ASSIGN_OR_RETURN(report.topology, ReadTopology(fs));
  ASSIGN_OR_RETURN(report.memory, ReadMemory(fs));
  ASSIGN_OR_RETURN(report.cgroup, ReadCgroupLimits(fs));
  report.affinity = options.affinity;
  if (!report.affinity && fs.live()) {
    ASSIGN_OR_RETURN(report.affinity, LiveAffinity());
  }
  ASSIGN_OR_RETURN(report.usable, ComputeUsable(report.topology.cpus, report.cgroup,
                                                report.affinity, report.memory));
  report.nics = ReadNics(fs);
  report.accelerators = ReadPciAccelerators(fs);
  ReadNvidia(fs, options, &report);
  return report;
}

}  // namespace plinth::probe
