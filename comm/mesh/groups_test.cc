#include "plinth/comm/mesh/groups.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plinth/comm/call/buffer.h"
#include "plinth/comm/rendezvous/options.h"
#include "plinth/comm/testing/ranks.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::plinth::comm::testing::FreePort;
using ::plinth::comm::testing::LocalOptions;
using ::plinth::comm::testing::RankOutcome;
using ::plinth::comm::testing::RunProcesses;

// Gathers the ranks of the world along `axes`: what Mesh says they are, by real communication.
std::string CheckGroup(Communicator& world, const Mesh& mesh, const char* axes) {
  const auto group = SplitAlong(world, mesh, axes);
  if (!group.ok()) return group.status().ToString();
  const std::vector<int> want = *mesh.GroupOf(axes, world.rank());
  if ((*group)->size() != static_cast<int>(want.size())) return absl::StrCat(axes, ": size");
  std::vector<int32_t> own = {world.rank()};
  std::vector<int32_t> all(want.size());
  const absl::Status status = (*group)->AllGather(BufferOf(std::span<const int32_t>(own)),
                                                  BufferOf(std::span<int32_t>(all)));
  if (!status.ok()) return status.ToString();
  return all == std::vector<int32_t>(want.begin(), want.end()) ? "" : absl::StrCat(axes, ": ranks");
}

TEST(MeshGroups, AreTheRanksThatTheMeshSays) {
  const int port = FreePort();
  const auto outcomes = RunProcesses(8, [&](int rank) -> std::string {
    const auto world =
        Communicator::Create(LocalOptions(rank, 8, port, TransportKind::kShm, absl::Seconds(20)));
    if (!world.ok()) return world.status().ToString();
    const auto mesh = Mesh::Create("dp=4,tp=2,ep=2", {.ranks = 8, .ranks_per_host = 4});
    if (!mesh.ok()) return mesh.status().ToString();
    for (const char* axes : {"tp", "dp", "ep", "edp", "dp,tp", "pp"}) {
      const std::string failure = CheckGroup(**world, *mesh, axes);
      if (!failure.empty()) return failure;
    }
    const auto unknown = SplitAlong(**world, *mesh, "sp");
    if (!absl::IsInvalidArgument(unknown.status())) return unknown.status().ToString();
    const auto other = Mesh::Create("dp=2", {.ranks = 2});
    const auto refused = SplitAlong(**world, *other, "dp");
    // Nothing was sent: the world goes on.
    const absl::Status still = (*world)->Barrier();
    return still.ok() ? std::string(refused.status().message()) : still.ToString();
  });
  for (const RankOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.report, "mesh dp=2 has 2 ranks, the group has 8");
  }
}

}  // namespace
}  // namespace plinth::comm
