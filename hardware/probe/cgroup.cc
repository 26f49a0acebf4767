#include "plinth/hardware/probe/cgroup.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::probe {
namespace {

using Words = std::vector<std::string>;

// v1 writes "no limit" as the largest multiple of the page size below 2^63.
constexpr int64_t kUnlimitedBytes = int64_t{1} << 62;

struct Mount {
  bool v2;
  std::string root;   // which cgroup the mount shows at its top
  std::string point;  // where
  Words controllers;  // v1 only
};

// "N:controllers:path" of /proc/self/cgroup; v2 is "0::path".
struct Membership {
  Words controllers;
  std::string path;
};

bool Contains(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The kernel writes blanks and backslashes in mount points as \ooo.
std::string Unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto octal = [&](size_t k) {
      return i + k < text.size() && text[i + k] >= '0' && text[i + k] < '8';
    };
    if (text[i] == '\\' && octal(1) && octal(2) && octal(3)) {
      out +=
          static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + text[i + 3] - '0');
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

// id parent major:minor ROOT POINT options [optional...] - TYPE source SUPER_OPTIONS
absl::StatusOr<std::vector<Mount>> ReadMounts(const RootFs& fs) {
  const std::string path = "/proc/self/mountinfo";
  ASSIGN_OR_RETURN(const std::optional<std::string> text, fs.ReadIfPresent(path));
  std::vector<Mount> mounts;
  for (const std::string& line :
       Words(absl::StrSplit(text.value_or(""), '\n', absl::SkipEmpty()))) {
    const Words fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (dash - fields.begin() < 6 || fields.end() - dash < 3) {
      return Malformed(path, "a mount line", line);
    }
    if (dash[1] != "cgroup" && dash[1] != "cgroup2") continue;
    mounts.push_back({.v2 = dash[1] == "cgroup2",
                      .root = Unescape(fields[3]),
                      .point = Unescape(fields[4]),
                      .controllers = absl::StrSplit(fields.back(), ',')});
  }
  return mounts;
}

absl::StatusOr<std::vector<Membership>> ReadMemberships(const RootFs& fs) {
  const std::string path = "/proc/self/cgroup";
  ASSIGN_OR_RETURN(const std::optional<std::string> text, fs.ReadIfPresent(path));
  std::vector<Membership> memberships;
  for (const std::string& line :
       Words(absl::StrSplit(text.value_or(""), '\n', absl::SkipEmpty()))) {
    const Words parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || !absl::StartsWith(parts[2], "/")) {
      return Malformed(path, "\"id:controllers:/path\"", line);
    }
    memberships.push_back({absl::StrSplit(parts[1], ',', absl::SkipEmpty()), parts[2]});
  }
  return memberships;
}

// Whether `path` lies in the subtree that `mount` shows.
bool Shows(const Mount& mount, const std::string& path) {
  const bool escapes = Contains(absl::StrSplit(path, '/'), "..");
  return !escapes &&
         (mount.root == "/" || path == mount.root || absl::StartsWith(path, mount.root + "/"));
}

// Path of the process's group below the mount point, "" for the mount point itself. A path
// outside what is mounted ("/../x" of a foreign cgroup namespace, or a container that sees
// the host's path but only its own subtree) means the mount shows our group at its top.
std::string Below(const Mount& mount, const std::string& path) {
  if (!Shows(mount, path)) return "";
  const std::string below = mount.root == "/" ? path : path.substr(mount.root.size());
  return below == "/" ? "" : below;
}

// Directories of the process's group in `mount` and of its visible ancestors, innermost first.
Words Levels(const RootFs& fs, const Mount& mount, const std::string& path) {
  Words levels;
  std::string below = Below(mount, path);
  while (!below.empty()) {
    if (fs.IsDirectory(mount.point + below)) levels.push_back(mount.point + below);
    below.erase(below.rfind('/'));
  }
  levels.push_back(mount.point);
  return levels;
}

// Where one controller of this process lives.
struct Attachment {
  bool v2 = false;
  Words levels;
};

// v1 first: on hybrid machines a controller attached to v1 has no files in the v2 tree. Among
// several mounts of one tree, one that shows our group beats one that shows somebody else's.
std::optional<Attachment> Attach(const RootFs& fs, const std::vector<Mount>& mounts,
                                 const std::vector<Membership>& memberships,
                                 std::string_view controller) {
  for (const bool v2 : {false, true}) {
    const Mount* best = nullptr;
    const Membership* ours = nullptr;
    for (const Membership& member : memberships) {
      if (v2 ? !member.controllers.empty() : !Contains(member.controllers, controller)) continue;
      for (const Mount& mount : mounts) {
        if (mount.v2 != v2 || (!v2 && !Contains(mount.controllers, controller))) continue;
        if (best != nullptr && (Shows(*best, member.path) || !Shows(mount, member.path))) continue;
        best = &mount;
        ours = &member;
      }
    }
    if (best != nullptr) return Attachment{v2, Levels(fs, *best, ours->path)};
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<double>> QuotaV2(const RootFs& fs, const std::string& directory) {
  const std::string path = directory + "/cpu.max";
  ASSIGN_OR_RETURN(const std::optional<std::string> text, fs.ReadIfPresent(path));
  if (!text.has_value()) return std::optional<double>();
  const Words parts = absl::StrSplit(*text, ' ', absl::SkipEmpty());
  const bool two = parts.size() == 2;
  const bool unlimited = two && parts[0] == "max";
  const int64_t quota = two ? ParseInt(parts[0]).value_or(0) : 0;
  const int64_t period = two ? ParseInt(parts[1]).value_or(0) : 0;
  if (period <= 0 || (!unlimited && quota <= 0)) {
    return Malformed(path, "\"<microseconds or max> <period>\"", *text);
  }
  if (unlimited) return std::optional<double>();
  return static_cast<double>(quota) / static_cast<double>(period);
}

absl::StatusOr<std::optional<double>> QuotaV1(const RootFs& fs, const std::string& directory) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> quota, fs.ReadInt(directory + "/cpu.cfs_quota_us"));
  if (!quota.has_value() || *quota == -1) return std::optional<double>();
  ASSIGN_OR_RETURN(const std::optional<int64_t> period,
                   fs.ReadInt(directory + "/cpu.cfs_period_us"));
  if (*quota <= 0 || !period.has_value() || *period <= 0) {
    return Malformed(directory + "/cpu.cfs_{quota,period}_us", "-1 or two positive numbers",
                     absl::StrCat(*quota, " / ", period.value_or(0)));
  }
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

// "max", or bytes; v1 has no word for "max".
absl::StatusOr<std::optional<uint64_t>> Bytes(const RootFs& fs, const std::string& path) {
  ASSIGN_OR_RETURN(const std::optional<std::string> text, fs.ReadIfPresent(path));
  if (!text.has_value() || *text == "max") return std::optional<uint64_t>();
  const std::optional<int64_t> bytes = ParseInt(*text);
  if (!bytes.has_value() || *bytes < 0) return Malformed(path, "bytes or \"max\"", *text);
  if (*bytes >= kUnlimitedBytes) return std::optional<uint64_t>();
  return std::optional<uint64_t>(*bytes);
}

// An empty list means "as the parent" in both generations.
absl::StatusOr<std::optional<CpuList>> Cpus(const RootFs& fs, const std::string& path) {
  ASSIGN_OR_RETURN(const std::optional<std::string> text, fs.ReadIfPresent(path));
  if (!text.has_value() || text->empty()) return std::optional<CpuList>();
  ASSIGN_OR_RETURN(CpuList cpus, ParseCpuList(*text), _ << path);
  return std::optional<CpuList>(std::move(cpus));
}

template <typename T>
void Tighten(std::optional<T>* limit, const std::optional<T>& other) {
  if (other.has_value() && (!limit->has_value() || *other < **limit)) *limit = other;
}

absl::Status ReadQuota(const RootFs& fs, const Attachment& cpu, CgroupLimits* limits) {
  for (const std::string& level : cpu.levels) {
    ASSIGN_OR_RETURN(const std::optional<double> quota,
                     cpu.v2 ? QuotaV2(fs, level) : QuotaV1(fs, level));
    Tighten(&limits->cpu_quota, quota);
  }
  return absl::OkStatus();
}

absl::Status ReadMemory(const RootFs& fs, const Attachment& memory, CgroupLimits* limits) {
  const Words files =
      memory.v2 ? Words{"/memory.max", "/memory.high"} : Words{"/memory.limit_in_bytes"};
  for (const std::string& level : memory.levels) {
    for (const std::string& file : files) {
      ASSIGN_OR_RETURN(const std::optional<uint64_t> bytes, Bytes(fs, level + file));
      Tighten(&limits->memory_bytes, bytes);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadCpuset(const RootFs& fs, const Attachment& cpuset, CgroupLimits* limits) {
  const Words files = cpuset.v2 ? Words{"/cpuset.cpus.effective", "/cpuset.cpus"}
                                : Words{"/cpuset.effective_cpus", "/cpuset.cpus"};
  for (const std::string& level : cpuset.levels) {
    for (const std::string& file : files) {
      ASSIGN_OR_RETURN(const std::optional<CpuList> cpus, Cpus(fs, level + file));
      if (!cpus.has_value()) continue;
      limits->cpuset = limits->cpuset.has_value() ? Intersect(*limits->cpuset, *cpus) : *cpus;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CgroupLimits> ReadCgroupLimits(const RootFs& fs) {
  ASSIGN_OR_RETURN(const std::vector<Mount> mounts, ReadMounts(fs));
  ASSIGN_OR_RETURN(const std::vector<Membership> memberships, ReadMemberships(fs));
  CgroupLimits limits;
  bool v1 = false;
  bool v2 = false;
  const std::pair<std::string_view,
                  absl::Status (*)(const RootFs&, const Attachment&, CgroupLimits*)>
      controllers[] = {{"cpu", ReadQuota}, {"memory", ReadMemory}, {"cpuset", ReadCpuset}};
  for (const auto& [controller, read] : controllers) {
    const std::optional<Attachment> attachment = Attach(fs, mounts, memberships, controller);
    if (!attachment.has_value()) continue;
    (attachment->v2 ? v2 : v1) = true;
    RETURN_IF_ERROR(read(fs, *attachment, &limits));
  }
  if (v1 || v2) limits.version = v1 && v2 ? "v1+v2" : v2 ? "v2" : "v1";
  return limits;
}

}  // namespace plinth::probe
