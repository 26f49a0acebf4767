#include "plinth/hardware/probe/host.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_split.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::probe {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kFeatures[] = {
    // x86
    "sse4_2", "avx", "avx2", "fma", "f16c", "avx_vnni", "avx512f", "avx512bw", "avx512dq",
    "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16",
    "amx_fp16",
    // ARM
    "asimd", "asimdhp", "asimddp", "sve", "sve2", "i8mm", "bf16", "sme", "sme2"};

// "name<blanks>: value" of /proc/cpuinfo's first processor; "" when absent.
std::string CpuInfoValue(const Words& lines, std::string_view name) {
  for (const std::string& line : lines) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::string key = line.substr(0, colon);
    key.erase(key.find_last_not_of(" \t") + 1);
    if (key != name) continue;
    const size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

// "Name:   123 kB" of /proc/meminfo, in bytes.
absl::StatusOr<std::optional<uint64_t>> MemInfoBytes(const Words& lines, std::string_view name) {
  for (const std::string& line : lines) {
    const Words words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.empty() || words[0] != std::string(name) + ":") continue;
    const std::optional<int64_t> kib = words.size() == 3 ? ParseInt(words[1]) : std::nullopt;
    if (!kib || *kib < 0 || *kib > (int64_t{1} << 52) || words[2] != "kB") {
      return Malformed("/proc/meminfo", "\"" + std::string(name) + ": <number> kB\"", line);
    }
    return std::optional<uint64_t>(static_cast<uint64_t>(*kib) * 1024);
  }
  return std::optional<uint64_t>();
}

// The bracketed word of "always [madvise] never".
std::string Chosen(const std::string& text) {
  const size_t open = text.find('[');
  const size_t close = text.find(']', open == std::string::npos ? 0 : open);
  if (open == std::string::npos || close == std::string::npos) return "";
  return text.substr(open + 1, close - open - 1);
}

absl::StatusOr<std::vector<HugePages>> ReadHugePages(const RootFs& fs) {
  const std::string base = "/sys/kernel/mm/hugepages";
  std::vector<HugePages> pools;
  for (const std::string& name : fs.List(base)) {  // hugepages-2048kB
    const size_t dash = name.find('-');
    const size_t unit = name.rfind("kB");
    if (dash == std::string::npos || unit == std::string::npos || unit <= dash) continue;
    const std::optional<int64_t> kib = ParseInt(name.substr(dash + 1, unit - dash - 1));
    if (!kib || *kib <= 0) continue;
    ASSIGN_OR_RETURN(const std::optional<int64_t> total,
                     fs.ReadInt(base + "/" + name + "/nr_hugepages"));
    ASSIGN_OR_RETURN(const std::optional<int64_t> free,
                     fs.ReadInt(base + "/" + name + "/free_hugepages"));
    pools.push_back({static_cast<uint64_t>(*kib) * 1024, total.value_or(0), free.value_or(0)});
  }
  std::sort(pools.begin(), pools.end(),
            [](const HugePages& a, const HugePages& b) { return a.page_bytes < b.page_bytes; });
  return pools;
}

}  // namespace

absl::StatusOr<CpuInfo> ReadCpuInfo(const RootFs& fs) {
  ASSIGN_OR_RETURN(const std::optional<std::string> text, fs.ReadIfPresent("/proc/cpuinfo"));
  const Words lines = absl::StrSplit(text.value_or(""), '\n');
  CpuInfo info{.model = CpuInfoValue(lines, "model name")};
  std::string flags = CpuInfoValue(lines, "flags");            // x86
  if (flags.empty()) flags = CpuInfoValue(lines, "Features");  // ARM
  const Words present = absl::StrSplit(flags, ' ', absl::SkipEmpty());
  for (const std::string_view feature : kFeatures) {
    if (std::find(present.begin(), present.end(), feature) != present.end()) {
      info.features.emplace_back(feature);
    }
  }
  return info;
}

absl::StatusOr<Memory> ReadMemory(const RootFs& fs) {
  ASSIGN_OR_RETURN(const std::optional<std::string> text, fs.ReadIfPresent("/proc/meminfo"));
  const Words lines = absl::StrSplit(text.value_or(""), '\n');
  Memory memory;
  ASSIGN_OR_RETURN(memory.total_bytes, MemInfoBytes(lines, "MemTotal"));
  ASSIGN_OR_RETURN(memory.available_bytes, MemInfoBytes(lines, "MemAvailable"));
  ASSIGN_OR_RETURN(memory.huge_pages, ReadHugePages(fs));
  ASSIGN_OR_RETURN(const std::optional<std::string> modes,
                   fs.ReadIfPresent("/sys/kernel/mm/transparent_hugepage/enabled"));
  memory.transparent_huge_pages = Chosen(modes.value_or(""));
  return memory;
}

}  // namespace plinth::probe
