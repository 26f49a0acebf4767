#include "plinth/hardware/threading/threads.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "gtest/gtest.h"

namespace plinth {
namespace {

TEST(Threads, CoversEachItemOnce) {
  for (int count : {1, 2, 3, 8}) {
    Threads threads(count);
    for (int64_t n : {0, 1, 2, 7, 64, 1001}) {
      for (int64_t grain : {1, 5, 1000}) {
        std::vector<std::atomic<int>> hits(n);
        threads.ParallelFor(n, grain, [&](int64_t begin, int64_t end) {
          EXPECT_LT(begin, end);
          for (int64_t i = begin; i < end; ++i) ++hits[i];
        });
        for (const auto& hit : hits) EXPECT_EQ(hit, 1);
      }
    }
  }
}

TEST(Threads, ATeamThatWasLeftComesBack) {
  Threads threads(3);
  for (int round = 0; round < 3; ++round) {
    std::vector<int> seen(100, 0);
    threads.ParallelFor(100, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++seen[i];
      Threads::LeaveTeam();  // no effect inside a loop
    });
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 100);
    Threads::LeaveTeam();
    Threads::LeaveTeam();
  }
}

TEST(Threads, NestedLoopsRunInside) {
  Threads threads(2);
  std::atomic<int64_t> sum{0};
  threads.ParallelFor(4, 1, [&](int64_t begin, int64_t end) {
    threads.ParallelFor(10, 1, [&](int64_t b, int64_t e) { sum += (e - b) * (end - begin); });
  });
  EXPECT_EQ(sum, 40);
}

}  // namespace
}  // namespace plinth
