#include "plinth/hardware/probe/cpu_list.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/probe/root_fs.h"

namespace plinth::probe {
namespace {

constexpr int64_t kMaxCpu = 65535;

// One "a" or "a-b"; false when it is neither.
bool AppendRange(std::string_view range, CpuList* cpus) {
  const size_t dash = range.find('-');
  const std::optional<int64_t> first = ParseInt(range.substr(0, dash));
  const std::optional<int64_t> last =
      dash == std::string_view::npos ? first : ParseInt(range.substr(dash + 1));
  if (!first || !last || *first < 0 || *last < *first || *last > kMaxCpu) return false;
  for (int64_t cpu = *first; cpu <= *last; ++cpu) cpus->push_back(static_cast<int>(cpu));
  return true;
}

}  // namespace

absl::StatusOr<CpuList> ParseCpuList(std::string_view text) {
  CpuList cpus;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const bool trailing_comma = comma != std::string_view::npos && comma + 1 == rest.size();
    if (trailing_comma || !AppendRange(rest.substr(0, comma), &cpus)) {
      return Malformed("CPU list", "numbers and ranges such as \"0-3,8\"", text);
    }
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::string FormatCpuList(const CpuList& cpus) {
  std::string out;
  for (size_t i = 0; i < cpus.size();) {
    size_t end = i + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    absl::StrAppend(&out, out.empty() ? "" : ",", cpus[i]);
    if (end - i > 1) absl::StrAppend(&out, "-", cpus[end - 1]);
    i = end;
  }
  return out;
}

CpuList Intersect(const CpuList& a, const CpuList& b) {
  CpuList both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

}  // namespace plinth::probe
