#include "plinth/comm/bench/launch/launch.h"

#include <csignal>
#include <cstring>
#include <functional>
#include <string>

#include "plinth/comm/rendezvous/options.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::HasSubstr;

EnvironmentLookup Only(const char* name, const char* value) {
  return [=](const char* asked) { return std::strcmp(asked, name) == 0 ? value : nullptr; };
}

TEST(Launch, RefusesToBeOneRankOfManyWithoutTheOthers) {
  for (const char* name : {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}) {
    EXPECT_THAT(CheckPromisedRanks(Only(name, "4"), 1),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr(std::string(name) + "=4 promises 4 ranks, but this process "
                                                       "sees 1")));
    EXPECT_OK(CheckPromisedRanks(Only(name, "4"), 4));
    // A launcher inside another: one task of the outer started several ranks.
    EXPECT_OK(CheckPromisedRanks(Only(name, "1"), 8));
  }
  EXPECT_OK(CheckPromisedRanks(Only("SLURM_NTASKS", "many"), 1));
}

TEST(Launch, ReportsTheWorstRank) {
  const auto run = [](const std::function<int(const CommOptions&)>& body) {
    return SpawnRanks(3, CommOptions{}, body);
  };
  EXPECT_EQ(run([](const CommOptions& o) { return o.size == 3 && o.store_port > 0 ? 0 : 9; }), 0);
  EXPECT_EQ(run([](const CommOptions& o) { return o.rank == 1 ? 7 : o.local_rank; }), 7);
  EXPECT_EQ(run([](const CommOptions& o) {
              if (o.rank == 2) raise(SIGKILL);
              return 0;
            }),
            1);
}

}  // namespace
}  // namespace plinth::comm
