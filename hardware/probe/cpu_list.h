// Sets of CPU numbers in the kernel's list notation: "0-3,8,10-11".
#ifndef PLINTH_HARDWARE_PROBE_CPU_LIST_H_
#define PLINTH_HARDWARE_PROBE_CPU_LIST_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace plinth::probe {

// CPU numbers, ascending, each once.
using CpuList = std::vector<int>;

// kInvalidArgument on anything but a well-formed list (empty is well-formed); numbers beyond
// 65535 are refused, so that a damaged file cannot ask for gigabytes.
absl::StatusOr<CpuList> ParseCpuList(std::string_view text);
std::string FormatCpuList(const CpuList& cpus);
CpuList Intersect(const CpuList& a, const CpuList& b);

}  // namespace plinth::probe

#endif  // PLINTH_HARDWARE_PROBE_CPU_LIST_H_
