// Ranks as points of a grid with named axes: who forms a group with whom in parallel training.
//
//   ASSIGN_OR_RETURN(Mesh mesh, Mesh::Create("dp=2,tp=4", {.ranks = 8, .ranks_per_host = 4}));
//   mesh.GroupOf("tp", 5)          {4, 5, 6, 7}
//   mesh.GroupOf("dp", 5)          {1, 5}
//   mesh.GroupOf("dp,tp", 5)       everyone
//
// Axes   tp tensor, cp context (sequence), dp data and pp pipeline parallel; others may be named as
//        you like. The product of their sizes is the number of ranks. An axis of these names that
//        is not listed has size 1.
// ep     expert parallel is no factor of its own: the ranks that hold different experts are data
//        parallel to the rest of the model, so ep divides dp. "dp=8,ep=4" makes two parts of dp:
//          ep   4 ranks with different experts, which exchange tokens (all-to-all)
//          edp  2 ranks with the same experts, which reduce the gradients of expert weights
//        while dp remains all 8, which reduce the gradients of all other weights.
// Order  of the axes in the numbering of ranks: those that talk most are innermost, so that they
//        stay inside a host. See MeshOrder.
// A value; pure arithmetic. Thread-compatible.
#ifndef PLINTH_COMM_MESH_MESH_H_
#define PLINTH_COMM_MESH_MESH_H_

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace plinth::comm {

struct MeshAxis {
  std::string name;  // a letter, then letters, digits and _; all small
  int size = 1;

  bool operator==(const MeshAxis&) const = default;
};

// "dp=2,tp=4"; spaces around names and numbers are fine. kInvalidArgument names the part that is
// no "name=size". Whether the axes make a mesh is for Create to say.
absl::StatusOr<std::vector<MeshAxis>> ParseMeshAxes(std::string_view text);

enum class MeshOrder {
  // Chosen from the topology: no other order lets a group of tp span fewer hosts; among the orders
  // equal in that, of cp; then of dp, of other axes, of pp. Where the hosts leave a choice, from
  // the outside in: pp, other axes as listed, dp, cp, tp.
  kByHosts,
  // As listed, the first axis outermost.
  kAsListed,
};

struct MeshOptions {
  int ranks = 1;
  // Consecutive ranks share a host. 0: all of them do.
  int ranks_per_host = 0;
  MeshOrder order = MeshOrder::kByHosts;
};

class Mesh {
 public:
  // kInvalidArgument, naming the axis and both numbers: sizes below 1 or whose product is not the
  // number of ranks, an axis that comes twice, an ep that does not divide dp.
  static absl::StatusOr<Mesh> Create(std::span<const MeshAxis> axes, const MeshOptions& options);
  static absl::StatusOr<Mesh> Create(std::string_view axes, const MeshOptions& options);

  int ranks() const { return options_.ranks; }
  int hosts() const;
  int HostOf(int rank) const;
  // From the outermost to the innermost; dp whole, without ep.
  std::span<const MeshAxis> axes() const { return axes_; }
  int expert_parallel() const { return expert_parallel_; }

  // The functions below take names of axes, ep and edp too. kInvalidArgument lists the axes there
  // are for any other name, and for a rank or a coordinate outside.
  absl::StatusOr<int> SizeOf(std::string_view axis) const;
  absl::StatusOr<int> CoordinateOf(std::string_view axis, int rank) const;
  // One coordinate for each of axes(), in its order.
  absl::StatusOr<int> RankAt(std::span<const int> coordinates) const;

  // `axes`: one name, or several with commas between them. The ranks that agree with `rank` in all
  // other axes, ascending.
  absl::StatusOr<std::vector<int>> GroupOf(std::string_view axes, int rank) const;
  // All groups along `axes`, by their lowest rank. Each rank is in one of them.
  absl::StatusOr<std::vector<std::vector<int>>> Groups(std::string_view axes) const;
  // Place of GroupOf(axes, rank) in Groups(axes): the color of a split.
  absl::StatusOr<int> GroupIndex(std::string_view axes, int rank) const;
  // The most hosts that a group along `axes` has ranks on.
  absl::StatusOr<int> HostsSpanned(std::string_view axes) const;

  // "pp=2,dp=4,tp=8,ep=2": axes() and ep. Parses into the same mesh when created as listed.
  std::string ToString() const;
  // For people: each axis with its size, groups and the hosts that a group spans.
  std::string Summary() const;
  // For people: one line per rank with its host and coordinates.
  std::string Table() const;

 private:
  // A factor of the rank's number: coordinate = rank / stride % size.
  struct Part {
    int stride;
    int size;
  };
  Mesh(std::vector<MeshAxis> axes, int expert_parallel, const MeshOptions& options)
      : axes_(std::move(axes)), expert_parallel_(expert_parallel), options_(options) {}

  std::vector<std::string> Names() const;
  absl::StatusOr<Part> PartOf(std::string_view axis) const;
  absl::StatusOr<std::vector<Part>> PartsOf(std::string_view axes) const;
  absl::Status CheckRank(int rank) const;
  std::string Unknown(std::string_view axis) const;
  // `rank` with the coordinates of `parts` set to 0: the lowest rank of its group.
  static int LowestOf(std::span<const Part> parts, int rank);
  static std::vector<int> GroupFrom(std::span<const Part> parts, int lowest);
  int HostsSpannedBy(std::span<const Part> parts) const;
  void OrderByHosts();

  std::vector<MeshAxis> axes_;
  int expert_parallel_ = 1;
  MeshOptions options_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_MESH_MESH_H_
