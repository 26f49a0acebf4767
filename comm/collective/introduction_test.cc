#include "plinth/comm/collective/introduction.h"

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/comm/transport/mem/connect.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::plinth::testing::IsOkAndHolds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Eq;
using ::testing::SizeIs;

constexpr int kRanks = 3;

CommOptions OptionsOf(int rank) {
  CommOptions options;
  options.rank = rank;
  options.size = kRanks;
  options.timeout = absl::Milliseconds(300);
  return options;
}

TEST(Introduction, RanksOfOneProcessShareAHost) {
  std::vector<std::unique_ptr<Transport>> ends = ConnectMem(kRanks);
  std::array<absl::StatusOr<std::vector<uint64_t>>, kRanks> hosts;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      hosts[rank] =
          Introduce(OptionsOf(rank), TableSet(), *ends[rank], absl::Now() + absl::Seconds(20));
    });
  }
  for (std::thread& rank : ranks) rank.join();
  ASSERT_OK(hosts[0]);
  for (const auto& seen : hosts) {
    EXPECT_THAT(seen, IsOkAndHolds(AllOf(SizeIs(kRanks), Each(Eq(hosts[0]->front())))));
  }
}

// Rank 0 gives up first and lets go of its end. Rank 1 hears of rank 2 all the same.
TEST(Introduction, WhoDoesNotComeIsNamedByAll) {
  std::vector<std::unique_ptr<Transport>> ends = ConnectMem(kRanks);
  std::array<std::string, 2> said;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      const absl::Duration patience = rank == 0 ? absl::Milliseconds(300) : absl::Seconds(20);
      said[rank] = Introduce(OptionsOf(rank), TableSet(), *ends[rank], absl::Now() + patience)
                       .status()
                       .ToString();
      ends[rank].reset();
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(said[0], "DEADLINE_EXCEEDED: rank 2 did not arrive at barrier #0 within 300ms");
  EXPECT_EQ(said[1],
            "ABORTED: aborted by rank 0: rank 2 did not arrive at barrier #0 within 300ms");
}

}  // namespace
}  // namespace plinth::comm
