#include "plinth/comm/mesh/mesh.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/rng.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::plinth::testing::IsOkAndHolds;
using ::plinth::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// Calls `use` with every mesh of sizes 1 to `most` on four axes, in every order of the axes.
void ForEachMesh(int most, const std::function<void(const Mesh&)>& use) {
  std::vector<std::string> names = {"cp", "dp", "pp", "tp"};
  do {
    for (int code = 0; code < most * most * most * most; ++code) {
      std::vector<MeshAxis> axes;
      int ranks = 1;
      for (int i = 0, rest = code; i < 4; ++i, rest /= most) {
        axes.push_back({names[i], rest % most + 1});
        ranks *= axes.back().size;
      }
      const auto mesh = Mesh::Create(axes, {.ranks = ranks, .order = MeshOrder::kAsListed});
      ASSERT_OK(mesh);
      use(*mesh);
    }
  } while (std::next_permutation(names.begin(), names.end()));
}

// The axes of the mesh whose bit is set in `mask`, and the others.
std::pair<std::string, std::string> Divide(const Mesh& mesh, unsigned mask) {
  std::vector<std::string> in, out;
  for (size_t i = 0; i < mesh.axes().size(); ++i) {
    ((mask >> i & 1) != 0 ? in : out).push_back(mesh.axes()[i].name);
  }
  return {absl::StrJoin(in, ","), absl::StrJoin(out, ",")};
}

std::vector<int> CoordinatesOf(const Mesh& mesh, int rank) {
  std::vector<int> coordinates;
  for (const MeshAxis& axis : mesh.axes()) {
    coordinates.push_back(*mesh.CoordinateOf(axis.name, rank));
  }
  return coordinates;
}

TEST(Mesh, RanksAndCoordinatesAreOneToOne) {
  ForEachMesh(3, [](const Mesh& mesh) {
    std::vector<int> previous;
    for (int rank = 0; rank < mesh.ranks(); ++rank) {
      const std::vector<int> now = CoordinatesOf(mesh, rank);
      ASSERT_THAT(mesh.RankAt(now), IsOkAndHolds(rank)) << mesh.ToString();
      // The last axis varies fastest.
      ASSERT_LT(previous, now) << mesh.ToString();
      previous = now;
    }
  });
}

TEST(Mesh, GroupsPartitionTheWorld) {
  ForEachMesh(3, [](const Mesh& mesh) {
    for (unsigned mask = 1; mask < 16; ++mask) {
      const std::string axes = Divide(mesh, mask).first;
      ASSERT_OK_AND_ASSIGN(const auto groups, mesh.Groups(axes));
      std::vector<int> seen(mesh.ranks(), 0);
      for (size_t index = 0; index < groups.size(); ++index) {
        ASSERT_TRUE(std::is_sorted(groups[index].begin(), groups[index].end()));
        ASSERT_EQ(groups[index].size() * groups.size(), seen.size());
        for (const int rank : groups[index]) {
          ++seen[rank];
          ASSERT_THAT(mesh.GroupOf(axes, rank), IsOkAndHolds(groups[index]));
          ASSERT_THAT(mesh.GroupIndex(axes, rank), IsOkAndHolds(static_cast<int>(index)));
        }
      }
      ASSERT_EQ(std::count(seen.begin(), seen.end(), 1), mesh.ranks()) << mesh.ToString();
    }
  });
}

// A group along some axes meets each group along the others in exactly one rank.
TEST(Mesh, ComplementaryGroupsMeetInOneRank) {
  ForEachMesh(2, [](const Mesh& mesh) {
    for (unsigned mask = 1; mask < 15; ++mask) {
      const auto [axes, others] = Divide(mesh, mask);
      ASSERT_OK_AND_ASSIGN(const auto groups, mesh.Groups(axes));
      ASSERT_OK_AND_ASSIGN(const auto crossing, mesh.Groups(others));
      for (const std::vector<int>& a : groups) {
        for (const std::vector<int>& b : crossing) {
          std::vector<int> common;
          std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
          ASSERT_EQ(common.size(), 1u) << mesh.ToString() << " " << axes << " x " << others;
        }
      }
    }
  });
}

TEST(Mesh, AGroupVariesOnlyInItsAxes) {
  ForEachMesh(3, [](const Mesh& mesh) {
    const int rank = mesh.ranks() / 2;
    for (size_t i = 0; i < mesh.axes().size(); ++i) {
      ASSERT_OK_AND_ASSIGN(const std::vector<int> group, mesh.GroupOf(mesh.axes()[i].name, rank));
      std::vector<int> want = CoordinatesOf(mesh, rank);
      for (int place = 0; place < mesh.axes()[i].size; ++place) {
        want[i] = place;
        ASSERT_EQ(CoordinatesOf(mesh, group[place]), want) << mesh.ToString();
      }
    }
  });
}

TEST(Mesh, ReadsItsOwnText) {
  ForEachMesh(3, [](const Mesh& mesh) {
    ASSERT_OK_AND_ASSIGN(
        const Mesh again,
        Mesh::Create(mesh.ToString(), {.ranks = mesh.ranks(), .order = MeshOrder::kAsListed}));
    ASSERT_EQ(again.Table(), mesh.Table());
  });
}

// Hosts that a group of each axis spans, of the most talkative axis first.
std::vector<int> HostCost(const Mesh& mesh) {
  std::vector<int> cost;
  for (const char* axis : {"tp", "cp", "dp", "pp"}) cost.push_back(*mesh.HostsSpanned(axis));
  return cost;
}

TEST(Mesh, NoOrderKeepsBusyAxesOnFewerHosts) {
  const uint64_t key = RngKey(1, "mesh");
  for (int round = 0; round < 150; ++round) {
    const auto draw = [&](int index, int most) {
      return static_cast<int>(RandomBits(key, round, index) % most) + 1;
    };
    std::vector<MeshAxis> axes = {
        {"cp", draw(0, 4)}, {"dp", draw(1, 4)}, {"pp", draw(2, 3)}, {"tp", draw(3, 4)}};
    int ranks = 1;
    for (const MeshAxis& axis : axes) ranks *= axis.size;
    const int per_host = draw(4, std::min(ranks, 9));
    ASSERT_OK_AND_ASSIGN(const Mesh chosen,
                         Mesh::Create(axes, {.ranks = ranks, .ranks_per_host = per_host}));
    const std::vector<int> cost = HostCost(chosen);
    do {
      ASSERT_OK_AND_ASSIGN(const Mesh other, Mesh::Create(axes, {.ranks = ranks,
                                                                 .ranks_per_host = per_host,
                                                                 .order = MeshOrder::kAsListed}));
      ASSERT_LE(cost, HostCost(other)) << chosen.Summary() << other.Summary();
    } while (std::next_permutation(
        axes.begin(), axes.end(),
        [](const MeshAxis& a, const MeshAxis& b) { return a.name < b.name; }));
  }
}

TEST(Mesh, PutsBusyAxesInsideAHost) {
  ASSERT_OK_AND_ASSIGN(const Mesh mesh, Mesh::Create("tp=4,pp=2,cp=2,dp=2,site=1",
                                                     {.ranks = 32, .ranks_per_host = 8}));
  EXPECT_EQ(mesh.ToString(), "pp=2,site=1,dp=2,cp=2,tp=4");
  EXPECT_EQ(mesh.hosts(), 4);
  EXPECT_THAT(mesh.GroupOf("tp", 5), IsOkAndHolds(ElementsAre(4, 5, 6, 7)));
  EXPECT_THAT(mesh.GroupOf("cp", 5), IsOkAndHolds(ElementsAre(1, 5)));
  EXPECT_THAT(mesh.GroupOf("dp", 5), IsOkAndHolds(ElementsAre(5, 13)));
  EXPECT_THAT(mesh.GroupOf("pp,cp", 5), IsOkAndHolds(ElementsAre(1, 5, 17, 21)));
  EXPECT_THAT(mesh.HostsSpanned("cp,tp"), IsOkAndHolds(1));
  EXPECT_THAT(mesh.HostsSpanned("dp"), IsOkAndHolds(2));
}

// 3 tensor parallel ranks do not fill hosts of 4, so that one group would straddle two; as an
// outer axis all of them would span three.
TEST(Mesh, CountsGroupsThatStraddleHosts) {
  ASSERT_OK_AND_ASSIGN(const Mesh mesh,
                       Mesh::Create("tp=3,pp=4", {.ranks = 12, .ranks_per_host = 4}));
  EXPECT_EQ(mesh.ToString(), "pp=4,tp=3");
  EXPECT_THAT(mesh.HostsSpanned("tp"), IsOkAndHolds(2));
  EXPECT_THAT(mesh.HostsSpanned("pp"), IsOkAndHolds(3));
}

TEST(Mesh, ExpertsDivideTheDataParallelRanks) {
  ASSERT_OK_AND_ASSIGN(const Mesh mesh, Mesh::Create("dp=6,tp=2,ep=3", {.ranks = 12}));
  EXPECT_EQ(mesh.ToString(), "dp=6,tp=2,ep=3");
  EXPECT_THAT(mesh.SizeOf("edp"), IsOkAndHolds(2));
  EXPECT_THAT(mesh.GroupOf("dp", 3), IsOkAndHolds(ElementsAre(1, 3, 5, 7, 9, 11)));
  EXPECT_THAT(mesh.GroupOf("ep", 3), IsOkAndHolds(ElementsAre(1, 3, 5)));
  EXPECT_THAT(mesh.GroupOf("edp", 3), IsOkAndHolds(ElementsAre(3, 9)));
  for (int rank = 0; rank < 12; ++rank) {
    EXPECT_EQ(*mesh.GroupOf("edp,ep", rank), *mesh.GroupOf("dp", rank));
    EXPECT_EQ(*mesh.CoordinateOf("dp", rank),
              *mesh.CoordinateOf("edp", rank) * 3 + *mesh.CoordinateOf("ep", rank));
  }
  EXPECT_THAT(mesh.GroupOf("dp,ep", 0), StatusIs(kInvalid, HasSubstr("dp holds ep and edp")));
}

TEST(Mesh, AxesThatAreNotListedHaveSizeOne) {
  ASSERT_OK_AND_ASSIGN(const Mesh mesh, Mesh::Create("tp=2", {.ranks = 2}));
  for (const char* axis : {"dp", "pp", "cp", "ep", "edp"}) {
    EXPECT_THAT(mesh.SizeOf(axis), IsOkAndHolds(1)) << axis;
    EXPECT_THAT(mesh.GroupOf(axis, 1), IsOkAndHolds(ElementsAre(1))) << axis;
  }
  ASSERT_OK_AND_ASSIGN(const Mesh one, Mesh::Create("", {.ranks = 1}));
  EXPECT_THAT(one.Groups("dp,tp"), IsOkAndHolds(ElementsAre(ElementsAre(0))));
  EXPECT_EQ(one.Summary(),
            "mesh without axes: 1 rank on 1 host\n"
            "axis     size  groups hosts/group  group of rank 0\n");
}

TEST(Mesh, ErrorsNameTheAxisAndBothNumbers) {
  const auto error = [](std::string_view axes, int ranks, int per_host = 0) {
    return std::string(
        Mesh::Create(axes, {.ranks = ranks, .ranks_per_host = per_host}).status().message());
  };
  EXPECT_EQ(error("dp=2,tp=3", 8),
            "mesh: axis tp=3 does not fit: dp=2,tp=3 must multiply to 8 ranks, and is 6 up to this "
            "axis");
  EXPECT_EQ(error("dp=2,tp=2", 8),
            "mesh: dp=2,tp=2 multiplies to 4 at its last axis tp, want 8 ranks");
  EXPECT_EQ(error("", 8), "mesh: no axes for 8 ranks");
  EXPECT_THAT(error("dp=2000000000,tp=2000000000,pp=2000000000", 8), HasSubstr("dp=2000000000"));
  EXPECT_EQ(error("dp=8,ep=3", 8),
            "mesh: axis ep=3 does not divide dp=8: experts are spread over the data parallel "
            "ranks");
  EXPECT_EQ(error("tp=0", 1), "mesh: axis tp has size 0, want 1 or more");
  EXPECT_EQ(error("tp=2,tp=2", 4), "mesh: axis tp comes twice");
  EXPECT_EQ(error("edp=2", 2), "mesh: edp is dp / ep and cannot be set: set ep");
  EXPECT_EQ(error("Tp=2", 2), "mesh: \"Tp\" is no name of an axis: small letters, digits and _");
  for (const char* text : {"tp", "tp=", "tp=x", "tp=2,", "=2x", "tp=2=3", "tp=99999999999"}) {
    EXPECT_THAT(ParseMeshAxes(text), StatusIs(kInvalid, HasSubstr("is no \"axis=size\""))) << text;
  }
  EXPECT_EQ(error("tp=2", 2, 3), "mesh: 3 ranks on a host, of 2 in all");
  ASSERT_OK_AND_ASSIGN(const Mesh mesh, Mesh::Create(" dp = 2 , tp=2", {.ranks = 4}));
  EXPECT_THAT(mesh.GroupOf("sp", 0),
              StatusIs(kInvalid, "mesh dp=2,tp=2 has no axis \"sp\"; it has dp, tp"));
  EXPECT_THAT(mesh.GroupOf("tp", 4),
              StatusIs(kInvalid, "mesh: rank 4 does not lie in a world of 4"));
  EXPECT_THAT(mesh.GroupOf("tp,tp", 0), StatusIs(kInvalid, HasSubstr("tp in it twice")));
  const int wrong[] = {0, 2};
  EXPECT_THAT(mesh.RankAt(wrong),
              StatusIs(kInvalid, "mesh: coordinate 2 does not lie on axis tp of size 2"));
}

TEST(Mesh, PrintsTablesForPeople) {
  ASSERT_OK_AND_ASSIGN(const Mesh mesh,
                       Mesh::Create("dp=2,tp=2,ep=2", {.ranks = 4, .ranks_per_host = 2}));
  EXPECT_EQ(mesh.Summary(),
            "mesh dp=2,tp=2,ep=2: 4 ranks on 2 hosts\n"
            "axis     size  groups hosts/group  group of rank 0\n"
            "dp          2       2           2  0 2\n"
            "edp         1       4           1  0\n"
            "ep          2       2           2  0 2\n"
            "tp          2       2           1  0 1\n");
  EXPECT_EQ(mesh.Table(),
            "  rank   host    dp   edp    ep    tp\n"
            "     0      0     0     0     0     0\n"
            "     1      0     0     0     0     1\n"
            "     2      1     1     0     1     0\n"
            "     3      1     1     0     1     1\n");
}

}  // namespace
}  // namespace plinth::comm
