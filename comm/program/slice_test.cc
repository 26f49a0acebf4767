#include "plinth/comm/program/slice.h"

#include <map>
#include <set>
#include <utility>

#include "gtest/gtest.h"

namespace plinth::comm {
namespace {

TEST(PartOf, PartsAreEvenAndFillTheWhole) {
  for (int64_t count = 0; count <= 20; ++count) {
    for (int64_t parts = 1; parts <= 8; ++parts) {
      int64_t next = 100;
      for (int64_t i = 0; i < parts; ++i) {
        const Range part = PartOf({100, count}, parts, i);
        EXPECT_EQ(part.begin, next);
        EXPECT_TRUE(part.count == count / parts || part.count == count / parts + 1);
        next += part.count;
      }
      EXPECT_EQ(next, 100 + count);
    }
  }
  constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_EQ(PartOf({0, kHuge}, 1000, 999).begin + PartOf({0, kHuge}, 1000, 999).count, kHuge);
}

// Every round of every slice once, rounds of a slice in order, and no more in work than said.
TEST(Schedule, EveryRoundOfEverySliceInOrder) {
  for (const bool pipelined : {false, true}) {
    for (int rounds = 1; rounds <= 6; ++rounds) {
      for (int slices = 1; slices <= 6; ++slices) {
        const Schedule schedule{rounds, slices, pipelined};
        std::map<int, int> next_round;  // by slice
        for (int step = 0; step < schedule.steps(); ++step) {
          std::set<int> sets;
          int previous = -1;
          schedule.ForEach(step, [&](int slice, int round) {
            EXPECT_GT(slice, previous);
            previous = slice;
            EXPECT_EQ(next_round[slice]++, round);
            EXPECT_TRUE(sets.insert(slice % schedule.in_flight()).second) << "shared scratch";
            if (pipelined) {
              EXPECT_EQ(step, slice + round);
            }
          });
          EXPECT_FALSE(sets.empty());
        }
        EXPECT_EQ(next_round.size(), static_cast<size_t>(slices));
        for (const auto& [slice, done] : next_round) EXPECT_EQ(done, rounds) << slice;
      }
    }
  }
  EXPECT_EQ((Schedule{5, 1, true}.steps()), (Schedule{5, 1, false}.steps()));
  EXPECT_EQ((Schedule{0, 4, false}.steps()), 0);
}

}  // namespace
}  // namespace plinth::comm
