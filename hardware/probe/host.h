// The host's own facts from /proc and /sys: names, CPU features, memory, huge pages.
#ifndef PLINTH_HARDWARE_PROBE_HOST_H_
#define PLINTH_HARDWARE_PROBE_HOST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plinth/hardware/probe/root_fs.h"

namespace plinth::probe {

struct CpuInfo {
  std::string model;  // "" where the kernel does not name it (many ARM machines)
  // Those the kernel reports as usable and that choose kernels here, in the kernel's spelling:
  // avx2 fma f16c avx512f avx512_vnni amx_bf16 ... (x86), asimd sve bf16 i8mm ... (ARM).
  std::vector<std::string> features;
};
absl::StatusOr<CpuInfo> ReadCpuInfo(const RootFs& fs);

struct HugePages {
  uint64_t page_bytes = 0;
  int64_t total = 0;
  int64_t free = 0;
};

struct Memory {
  std::optional<uint64_t> total_bytes;      // MemTotal
  std::optional<uint64_t> available_bytes;  // MemAvailable: without swapping
  std::vector<HugePages> huge_pages;        // reserved pools, by size
  std::string transparent_huge_pages;       // "always", "madvise", "never"; "" unknown
};
// Errors: kInvalidArgument naming a malformed file. Missing files leave fields unset.
absl::StatusOr<Memory> ReadMemory(const RootFs& fs);

}  // namespace plinth::probe

#endif  // PLINTH_HARDWARE_PROBE_HOST_H_
