#include "plinth/comm/bench/sweep/measure.h"

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "plinth/comm/collective/communicator.h"
#include "plinth/comm/testing/ranks.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

TEST(Measure, LeavesDisturbedBatchesOutWhileEnoughRemain) {
  const Timing few = Summarize({{5, false}, {90, true}, {1, false}, {3, false}});
  EXPECT_EQ(few.median_us, 3);
  EXPECT_EQ(few.p10_us, 1);
  EXPECT_EQ(few.p90_us, 5);
  EXPECT_EQ(few.batches, 4);
  EXPECT_EQ(few.disturbed, 1);
  // Most were disturbed: one that was not says less than all together.
  EXPECT_EQ(Summarize({{1, false}, {8, true}, {9, true}}).median_us, 8);
}

TEST(Measure, TakesTheRatioRoundByRound) {
  // The machine slows down by ten half way; the ratio of medians would be 0.2 or 20.
  EXPECT_EQ(MedianRatio({{1}, {1}, {10}}, {{2}, {2}, {20}}), 2);
  EXPECT_EQ(MedianRatio({{1}, {1}, {4, true}}, {{2}, {2}, {1}}), 2);
}

TEST(Measure, AllRanksGetTheSlowestRanksTimeOfEachCall) {
  const auto reports =
      testing::RunThreads(3, absl::Seconds(20), [](Communicator& comm) -> std::string {
        const auto sleep_on_last_rank = [&] {
          if (comm.rank() == 2) std::this_thread::sleep_for(std::chrono::milliseconds(3));
          return absl::OkStatus();
        };
        const TimedCalls calls[] = {InLoop(sleep_on_last_rank),
                                    InLoop([&] { return comm.Barrier(); })};
        const MeasurePlan plan{.batches = 3, .batch_length = absl::Milliseconds(1)};
        const auto samples = TimeInTurns(comm, calls, plan);
        if (!samples.ok()) return samples.status().ToString();
        if (samples->size() != 2 || (*samples)[0].size() != 3) return "wrong shape";
        if ((*samples)[0][0].us < 3000) return "the sleeping rank was not counted";
        return absl::StrCat((*samples)[0][1].us, " ", (*samples)[1][2].us);
      });
  EXPECT_THAT(reports[0], ::testing::MatchesRegex("[0-9.]+ [0-9.]+"));
  EXPECT_EQ(reports[0], reports[1]);
  EXPECT_EQ(reports[0], reports[2]);
}

TEST(Measure, EndsWithTheErrorOfACall) {
  const auto reports = testing::RunThreads(2, absl::Seconds(20), [](Communicator& comm) {
    const TimedCalls calls[] = {InLoop([] { return absl::UnavailableError("no such network"); })};
    return std::string(TimeInTurns(comm, calls, MeasurePlan{}).status().message());
  });
  EXPECT_EQ(reports[0], "no such network");
}

}  // namespace
}  // namespace plinth::comm
