#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "plinth/hardware/probe/nvidia.h"

namespace plinth::probe {
namespace {

// The number that an entry starts with; -1 when it starts with none, or with a sign or a
// value that no ordinal has.
int LeadingOrdinal(std::string_view entry) {
  const size_t first = entry.find_first_not_of(" \t");
  if (first == std::string_view::npos) return -1;
  entry.remove_prefix(entry[first] == '+' ? first + 1 : first);
  int value = -1;
  for (const char c : entry) {
    if (c < '0' || c > '9') break;
    value = std::max(value, 0) * 10 + (c - '0');
    if (value > 1 << 20) return -1;
  }
  return value;
}

// Whether `entry` spells MIG device `mig` of `gpu`, in either notation.
bool NamesMig(std::string_view entry, const NvidiaGpu& gpu, const MigDevice& mig) {
  const std::string text(entry);
  if (!absl::StartsWith(text, "MIG-GPU-")) return absl::StartsWith(mig.uuid, text);
  return text == absl::StrCat("MIG-", gpu.uuid, "/", mig.gpu_instance, "/", mig.compute_instance);
}

// All devices that an identifier may mean: one, unless it is unknown or cut too short.
std::vector<VisibleDevice> Named(const std::vector<NvidiaGpu>& gpus, std::string_view entry) {
  std::vector<VisibleDevice> matches;
  const bool is_mig = absl::StartsWith(std::string(entry), "MIG-");
  for (int g = 0; g < static_cast<int>(gpus.size()); ++g) {
    if (!is_mig) {
      if (absl::StartsWith(gpus[g].uuid, std::string(entry))) matches.push_back({.gpu = g});
      continue;
    }
    for (int m = 0; m < static_cast<int>(gpus[g].mig_devices.size()); ++m) {
      if (NamesMig(entry, gpus[g], gpus[g].mig_devices[m])) matches.push_back({g, m});
    }
  }
  return matches;
}

// The devices that a list asks for, before MIG's own rules.
std::vector<VisibleDevice> Selected(const std::vector<NvidiaGpu>& gpus, std::string_view list) {
  const std::vector<std::string> entries = absl::StrSplit(std::string(list), ',');
  std::string notation;
  for (const char* prefix : {"GPU-", "MIG-"}) {
    if (absl::StartsWith(entries[0], prefix)) notation = prefix;
  }
  std::vector<VisibleDevice> selected;
  for (const std::string& entry : entries) {
    std::vector<VisibleDevice> named;
    if (notation.empty()) {
      const int ordinal = LeadingOrdinal(entry);
      if (ordinal >= 0 && ordinal < static_cast<int>(gpus.size())) named = {{.gpu = ordinal}};
    } else if (absl::StartsWith(entry, notation)) {
      named = Named(gpus, entry);
    }
    if (named.size() != 1) break;
    if (std::find(selected.begin(), selected.end(), named[0]) != selected.end()) return {};
    selected.push_back(named[0]);
  }
  return selected;
}

}  // namespace

std::vector<VisibleDevice> VisibleDevices(const std::vector<NvidiaGpu>& gpus,
                                          std::optional<std::string_view> cuda_visible_devices) {
  std::vector<VisibleDevice> selected;
  if (cuda_visible_devices.has_value()) {
    selected = Selected(gpus, *cuda_visible_devices);
  } else {
    for (int g = 0; g < static_cast<int>(gpus.size()); ++g) selected.push_back({.gpu = g});
  }
  std::vector<VisibleDevice> whole_gpus;
  for (const VisibleDevice& device : selected) {
    const NvidiaGpu& gpu = gpus[device.gpu];
    if (device.mig >= 0) return {device};
    if (!gpu.mig_enabled) {
      whole_gpus.push_back(device);
    } else if (!gpu.mig_devices.empty()) {
      return {{.gpu = device.gpu, .mig = 0}};
    }
  }
  return whole_gpus;
}

}  // namespace plinth::probe
