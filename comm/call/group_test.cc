#include "plinth/comm/call/group.h"

#include "gtest/gtest.h"

namespace plinth::comm {
namespace {

int RanksPerHost(std::vector<uint64_t> hosts) {
  GroupInfo group;
  group.hosts = std::move(hosts);
  return group.RanksPerHost();
}

TEST(Group, RanksPerHostIsTheLengthOfEqualRuns) {
  EXPECT_EQ(RanksPerHost({7}), 1);
  EXPECT_EQ(RanksPerHost({7, 7, 7}), 3);
  EXPECT_EQ(RanksPerHost({7, 8, 9}), 1);
  EXPECT_EQ(RanksPerHost({7, 7, 9, 9}), 2);
  EXPECT_EQ(RanksPerHost({7, 7, 7, 9, 9, 9, 8}), 3);  // the last host may hold fewer
}

TEST(Group, OtherLayoutsCountAsRanksAlone) {
  EXPECT_EQ(RanksPerHost({7, 9, 9}), 1);
  EXPECT_EQ(RanksPerHost({7, 9, 7, 9}), 1);
  EXPECT_EQ(RanksPerHost({7, 7, 9, 8, 8}), 1);
  EXPECT_EQ(RanksPerHost({7, 7, 9, 9, 7}), 1);
  EXPECT_EQ(RanksPerHost({7, 7, 9, 9, 9}), 1);
}

}  // namespace
}  // namespace plinth::comm
