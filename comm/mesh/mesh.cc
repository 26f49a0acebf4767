#include "plinth/comm/mesh/mesh.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr char kTensor[] = "tp", kContext[] = "cp", kData[] = "dp", kPipeline[] = "pp";
constexpr char kExpert[] = "ep", kExpertData[] = "edp";

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

bool IsName(const std::string& text) {
  if (text.empty() || !absl::ascii_islower(text[0])) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_';
  });
}

bool IsKnown(std::string_view name) {
  return name == kTensor || name == kContext || name == kData || name == kPipeline;
}

// How much an axis asks for being inside a host; 0 is most. Tensor parallel ranks talk in every
// layer, context parallel ones in every attention, data parallel ones once a step, and a pipeline
// passes on only activations.
int Reluctance(std::string_view name) {
  if (name == kTensor) return 0;
  if (name == kContext) return 1;
  if (name == kData) return 2;
  if (name == kPipeline) return 4;
  return 3;
}

// As "dp=2,tp=4".
std::string Text(std::span<const MeshAxis> axes) {
  return absl::StrJoin(axes, ",", [](std::string* out, const MeshAxis& axis) {
    absl::StrAppend(out, axis.name, "=", axis.size);
  });
}

absl::Status CheckAxis(const MeshAxis& axis) {
  if (!IsName(axis.name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "mesh: \"", axis.name, "\" is no name of an axis: small letters, digits and _"));
  }
  if (axis.name == kExpertData) {
    return absl::InvalidArgumentError("mesh: edp is dp / ep and cannot be set: set ep");
  }
  if (axis.size < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("mesh: axis ", axis.name, " has size ", axis.size, ", want 1 or more"));
  }
  return absl::OkStatus();
}

absl::Status CheckProduct(std::span<const MeshAxis> axes, int ranks) {
  int64_t product = 1;
  for (const MeshAxis& axis : axes) {
    product *= axis.size;
    // Bounded at each step: sizes may be absurd.
    if (product > ranks || ranks % product != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "mesh: axis ", axis.name, "=", axis.size, " does not fit: ", Text(axes),
          " must multiply to ", ranks, " ranks, and is ", product, " up to this axis"));
    }
  }
  if (product == ranks) return absl::OkStatus();
  if (axes.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("mesh: no axes for ", ranks, " ranks"));
  }
  return absl::InvalidArgumentError(absl::StrCat("mesh: ", Text(axes), " multiplies to ", product,
                                                 " at its last axis ", axes.back().name, ", want ",
                                                 ranks, " ranks"));
}

}  // namespace

absl::StatusOr<std::vector<MeshAxis>> ParseMeshAxes(std::string_view text) {
  std::vector<MeshAxis> axes;
  if (absl::StripAsciiWhitespace(View(text)).empty()) return axes;
  for (const absl::string_view part : absl::StrSplit(View(text), ',')) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    MeshAxis axis{std::string(absl::StripAsciiWhitespace(pair.first)), 0};
    if (!absl::SimpleAtoi(pair.second, &axis.size)) {
      return absl::InvalidArgumentError(
          absl::StrCat("mesh: \"", part, "\" is no \"axis=size\" such as tp=4"));
    }
    axes.push_back(std::move(axis));
  }
  return axes;
}

absl::StatusOr<Mesh> Mesh::Create(std::string_view axes, const MeshOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<MeshAxis> parsed, ParseMeshAxes(axes));
  return Create(parsed, options);
}

absl::StatusOr<Mesh> Mesh::Create(std::span<const MeshAxis> axes, const MeshOptions& options) {
  if (options.ranks < 1 || options.ranks_per_host < 0 || options.ranks_per_host > options.ranks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "mesh: ", options.ranks_per_host, " ranks on a host, of ", options.ranks, " in all"));
  }
  std::vector<MeshAxis> factors;
  std::set<std::string> seen;
  int expert = 1;
  int data = 1;
  for (const MeshAxis& axis : axes) {
    RETURN_IF_ERROR(CheckAxis(axis));
    if (!seen.insert(axis.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("mesh: axis ", axis.name, " comes twice"));
    }
    if (axis.name == kData) data = axis.size;
    if (axis.name == kExpert) {
      expert = axis.size;
    } else {
      factors.push_back(axis);
    }
  }
  RETURN_IF_ERROR(CheckProduct(factors, options.ranks));
  if (data % expert != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("mesh: axis ep=", expert, " does not divide dp=", data,
                     ": experts are spread over the data parallel ranks"));
  }
  Mesh mesh(std::move(factors), expert, options);
  if (options.ranks_per_host == 0) mesh.options_.ranks_per_host = options.ranks;
  if (options.order == MeshOrder::kByHosts) mesh.OrderByHosts();
  return mesh;
}

// There are few axes, so all orders are tried.
void Mesh::OrderByHosts() {
  // Reluctant axes last, that is innermost; ties as listed.
  std::stable_sort(axes_.begin(), axes_.end(), [](const MeshAxis& a, const MeshAxis& b) {
    return Reluctance(a.name) > Reluctance(b.name);
  });
  constexpr size_t kMostOrdered = 6;
  if (hosts() == 1 || axes_.size() > kMostOrdered) return;
  const auto cost = [this] {
    std::vector<int> spanned;  // of the most talkative axis first
    for (int reluctance = 0; reluctance <= Reluctance(kPipeline); ++reluctance) {
      for (const MeshAxis& axis : axes_) {
        if (Reluctance(axis.name) != reluctance) continue;
        spanned.push_back(HostsSpannedBy(*PartsOf(axis.name)));
      }
    }
    return spanned;
  };
  std::vector<MeshAxis> best = axes_;
  std::vector<int> least = cost();
  const std::vector<MeshAxis> preferred = axes_;
  std::vector<int> order(axes_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  while (std::next_permutation(order.begin(), order.end())) {
    for (size_t i = 0; i < order.size(); ++i) axes_[i] = preferred[order[i]];
    std::vector<int> now = cost();
    if (now < least) {
      least = std::move(now);
      best = axes_;
    }
  }
  axes_ = std::move(best);
}

int Mesh::hosts() const {
  return (options_.ranks + options_.ranks_per_host - 1) / options_.ranks_per_host;
}

int Mesh::HostOf(int rank) const { return rank / options_.ranks_per_host; }

std::vector<std::string> Mesh::Names() const {
  std::vector<std::string> names;
  for (const MeshAxis& axis : axes_) {
    names.push_back(axis.name);
    if (axis.name != kData || expert_parallel_ == 1) continue;
    names.push_back(kExpertData);
    names.push_back(kExpert);
  }
  return names;
}

std::string Mesh::Unknown(std::string_view axis) const {
  return absl::StrCat("mesh ", ToString(), " has no axis \"", View(axis), "\"; it has ",
                      absl::StrJoin(Names(), ", "));
}

absl::StatusOr<Mesh::Part> Mesh::PartOf(std::string_view axis) const {
  const bool expert = axis == kExpert;
  const std::string_view factor = expert || axis == kExpertData ? kData : axis;
  int stride = 1;
  for (auto it = axes_.rbegin(); it != axes_.rend(); stride *= it->size, ++it) {
    if (it->name != factor) continue;
    if (expert) return Part{stride, expert_parallel_};
    if (axis == kExpertData) return Part{stride * expert_parallel_, it->size / expert_parallel_};
    return Part{stride, it->size};
  }
  if (IsKnown(factor)) return Part{1, 1};
  return absl::InvalidArgumentError(Unknown(axis));
}

absl::StatusOr<std::vector<Mesh::Part>> Mesh::PartsOf(std::string_view axes) const {
  std::vector<Part> parts;
  std::set<int> strides;  // two parts that overlap have a stride in common or are dp and edp
  bool whole_data = false;
  bool part_of_data = false;
  for (const absl::string_view text : absl::StrSplit(View(axes), ',')) {
    const std::string name(absl::StripAsciiWhitespace(text));
    ASSIGN_OR_RETURN(const Part part, PartOf(name));
    whole_data |= name == kData;
    part_of_data |= name == kExpert || name == kExpertData;
    const bool twice = part.size > 1 && !strides.insert(part.stride).second;
    if (twice || (whole_data && part_of_data)) {
      return absl::InvalidArgumentError(absl::StrCat("mesh: \"", View(axes), "\" has ", name,
                                                     " in it twice; dp holds ep and edp"));
    }
    parts.push_back(part);
  }
  return parts;
}

absl::Status Mesh::CheckRank(int rank) const {
  if (rank >= 0 && rank < ranks()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("mesh: rank ", rank, " does not lie in a world of ", ranks()));
}

absl::StatusOr<int> Mesh::SizeOf(std::string_view axis) const {
  ASSIGN_OR_RETURN(const Part part, PartOf(axis));
  return part.size;
}

absl::StatusOr<int> Mesh::CoordinateOf(std::string_view axis, int rank) const {
  RETURN_IF_ERROR(CheckRank(rank));
  ASSIGN_OR_RETURN(const Part part, PartOf(axis));
  return rank / part.stride % part.size;
}

absl::StatusOr<int> Mesh::RankAt(std::span<const int> coordinates) const {
  if (coordinates.size() != axes_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("mesh: ", coordinates.size(), " coordinates for ", axes_.size(), " axes"));
  }
  int rank = 0;
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (coordinates[i] < 0 || coordinates[i] >= axes_[i].size) {
      return absl::InvalidArgumentError(absl::StrCat("mesh: coordinate ", coordinates[i],
                                                     " does not lie on axis ", axes_[i].name,
                                                     " of size ", axes_[i].size));
    }
    rank = rank * axes_[i].size + coordinates[i];
  }
  return rank;
}

int Mesh::LowestOf(std::span<const Part> parts, int rank) {
  for (const Part& part : parts) rank -= rank / part.stride % part.size * part.stride;
  return rank;
}

std::vector<int> Mesh::GroupFrom(std::span<const Part> parts, int lowest) {
  std::vector<int> group = {lowest};
  for (const Part& part : parts) {
    const size_t before = group.size();
    for (int i = 1; i < part.size; ++i) {
      for (size_t member = 0; member < before; ++member) {
        group.push_back(group[member] + i * part.stride);
      }
    }
  }
  std::sort(group.begin(), group.end());
  return group;
}

absl::StatusOr<std::vector<int>> Mesh::GroupOf(std::string_view axes, int rank) const {
  RETURN_IF_ERROR(CheckRank(rank));
  ASSIGN_OR_RETURN(const std::vector<Part> parts, PartsOf(axes));
  return GroupFrom(parts, LowestOf(parts, rank));
}

absl::StatusOr<std::vector<std::vector<int>>> Mesh::Groups(std::string_view axes) const {
  ASSIGN_OR_RETURN(const std::vector<Part> parts, PartsOf(axes));
  std::vector<std::vector<int>> groups;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (LowestOf(parts, rank) == rank) groups.push_back(GroupFrom(parts, rank));
  }
  return groups;
}

absl::StatusOr<int> Mesh::GroupIndex(std::string_view axes, int rank) const {
  RETURN_IF_ERROR(CheckRank(rank));
  ASSIGN_OR_RETURN(const std::vector<Part> parts, PartsOf(axes));
  const int lowest = LowestOf(parts, rank);
  int index = 0;
  for (int below = 0; below < lowest; ++below) index += LowestOf(parts, below) == below ? 1 : 0;
  return index;
}

int Mesh::HostsSpannedBy(std::span<const Part> parts) const {
  int most = 0;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (LowestOf(parts, rank) != rank) continue;
    int hosts = 0;
    int last = -1;
    for (const int member : GroupFrom(parts, rank)) {  // ascending, and so are their hosts
      hosts += HostOf(member) != last ? 1 : 0;
      last = HostOf(member);
    }
    most = std::max(most, hosts);
  }
  return most;
}

absl::StatusOr<int> Mesh::HostsSpanned(std::string_view axes) const {
  ASSIGN_OR_RETURN(const std::vector<Part> parts, PartsOf(axes));
  return HostsSpannedBy(parts);
}

std::string Mesh::ToString() const {
  const std::string text = Text(axes_);
  return expert_parallel_ == 1 ? text : absl::StrCat(text, ",", kExpert, "=", expert_parallel_);
}

std::string Mesh::Summary() const {
  constexpr size_t kMostShown = 8;
  std::string out = absl::StrCat("mesh ", ToString(), axes_.empty() ? "without axes: " : ": ",
                                 ranks(), ranks() == 1 ? " rank on " : " ranks on ", hosts(),
                                 hosts() == 1 ? " host\n" : " hosts\n");
  absl::StrAppendFormat(&out, "%-6s %6s %7s %11s  %s\n", "axis", "size", "groups", "hosts/group",
                        "group of rank 0");
  for (const std::string& name : Names()) {
    const std::vector<Part> parts = *PartsOf(name);
    std::vector<int> first = GroupFrom(parts, 0);
    const bool cut = first.size() > kMostShown;
    if (cut) first.resize(kMostShown);
    absl::StrAppendFormat(&out, "%-6s %6d %7d %11d  %s%s\n", name, parts[0].size,
                          ranks() / parts[0].size, HostsSpannedBy(parts), absl::StrJoin(first, " "),
                          cut ? " ..." : "");
  }
  return out;
}

std::string Mesh::Table() const {
  const std::vector<std::string> names = Names();
  std::string out = absl::StrFormat("%6s %6s", "rank", "host");
  for (const std::string& name : names) absl::StrAppendFormat(&out, " %5s", name);
  out += '\n';
  for (int rank = 0; rank < ranks(); ++rank) {
    absl::StrAppendFormat(&out, "%6d %6d", rank, HostOf(rank));
    for (const std::string& name : names) {
      const Part part = *PartOf(name);
      absl::StrAppendFormat(&out, " %5d", rank / part.stride % part.size);
    }
    out += '\n';
  }
  return out;
}

}  // namespace plinth::comm
