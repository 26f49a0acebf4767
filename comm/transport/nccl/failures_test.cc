// Calls that fail over NCCL, against a library that can be told to.
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "plinth/comm/call/call.h"
#include "plinth/comm/transport/nccl/testing/nccl_ranks.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm::testing {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using NcclFailuresTest = NcclTest;

// Makes five calls and reports the first error.
std::string CallUntilError(Rank& rank) {
  for (int call = 1; call <= 5; ++call) {
    Bytes data(4000);
    const absl::Status status =
        rank.Call(MakeCall(OpKind::kAllReduce, ReduceOp::kSum, DType::kF32, 1000, -1, data, data));
    if (!status.ok()) return status.ToString();
  }
  return "no error";
}

TEST_F(NcclFailuresTest, AnAsynchronousErrorNamesTheRankAndTheCall) {
  const ScopedEnv error("FAKE_NCCL_ASYNC_ERROR", "2:3");
  const absl::Time start = absl::Now();
  const auto reports = RunRanks({.size = 4}, CallUntilError);
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));
  const std::string verdict =
      "rank 2 did not finish all_reduce #3 (f32 x 1000): NCCL: remote process exited or there was "
      "a network error (said the fake)";
  EXPECT_EQ(reports[2], "UNAVAILABLE: " + verdict);
  for (const int rank : {0, 1, 3}) {
    EXPECT_EQ(reports[rank], "ABORTED: aborted by rank 2: " + verdict);
  }
  EXPECT_EQ(Counts().begun, 4);
  ExpectAllWereAborted();
}

TEST_F(NcclFailuresTest, ACallThatIsRefusedNamesTheRankAndTheCall) {
  const ScopedEnv error("FAKE_NCCL_QUEUE_ERROR", "1:2");
  const auto reports = RunRanks({.size = 3}, CallUntilError);
  EXPECT_EQ(reports[1],
            "UNAVAILABLE: rank 1 did not finish all_reduce #2 (f32 x 1000): NCCL: invalid usage "
            "(said the fake)");
  EXPECT_THAT(reports[0], StartsWith("ABORTED: aborted by rank 1: rank 1 did not finish"));
  EXPECT_EQ(Counts().begun, 3);
  ExpectAllWereAborted();
}

TEST_F(NcclFailuresTest, AnErrorOfTheGpuNamesTheRankAndTheCall) {
  const ScopedEnv error("FAKE_CUDA_ERROR", "0:4");
  const auto reports = RunRanks({.size = 3}, CallUntilError);
  EXPECT_EQ(reports[0],
            "UNAVAILABLE: rank 0 did not finish all_reduce #4 (f32 x 1000): NCCL: nccl: the driver "
            "cannot run the operation: CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_THAT(reports[2], StartsWith("ABORTED: aborted by rank 0: rank 0 did not finish"));
  EXPECT_EQ(Counts().begun, 3);
  ExpectAllWereAborted();
}

TEST_F(NcclFailuresTest, AHangEndsAtTheDeadlineWithAnAbort) {
  const ScopedEnv hang("FAKE_NCCL_HANG", "1:2");
  const absl::Time start = absl::Now();
  const auto reports = RunRanks({.size = 3, .timeout = absl::Milliseconds(300)}, CallUntilError);
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(250));
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));
  EXPECT_THAT(reports,
              Each(HasSubstr("did not finish all_reduce #2 (f32 x 1000) within 300ms: all ranks "
                             "arrived, and NCCL reports no error")));
  EXPECT_THAT(reports, Each(AnyOf(StartsWith("DEADLINE_EXCEEDED: rank"),
                                  StartsWith("ABORTED: aborted by rank"))));
  EXPECT_EQ(Counts().begun, 3);
  ExpectAllWereAborted();
}

TEST_F(NcclFailuresTest, AbortEndsACallThatHangs) {
  const ScopedEnv hang("FAKE_NCCL_HANG", "0:1");
  const absl::Time start = absl::Now();
  const auto reports = RunRanks({.size = 2}, [](Rank& rank) {
    std::thread other([&] {
      if (rank.transport.rank() != 0) return;
      absl::SleepFor(absl::Milliseconds(50));
      rank.transport.Abort("enough");
      rank.backend.Abort();
    });
    const std::string report = CallUntilError(rank);
    other.join();
    return report;
  });
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));
  EXPECT_THAT(reports[0], StartsWith("ABORTED: all_reduce #1 (f32 x 1000): aborted"));
  EXPECT_EQ(reports[1], "ABORTED: aborted by rank 0: enough");
  EXPECT_EQ(Counts().begun, 2);
  ExpectAllWereAborted();
}

TEST_F(NcclFailuresTest, ARankThatLeavesIsNamedAtTheDeadline) {
  const auto reports =
      RunRanks({.size = 2, .timeout = absl::Milliseconds(200)}, [](Rank& rank) -> std::string {
        Bytes data(4);
        CollectiveCall call =
            MakeCall(OpKind::kAllReduce, ReduceOp::kSum, DType::kF32, 1, -1, data, data);
        if (rank.transport.rank() == 1) {
          // Meets, and goes without its part.
          std::vector<std::span<const std::byte>> notes;
          rank.transport.Announce({}, notes, absl::Now() + kNcclPatience);
          return "";
        }
        return rank.Call(call).ToString();
      });
  EXPECT_THAT(reports[0], HasSubstr("did not finish all_reduce #1 (f32 x 1) within 200ms"));
  // The rank that left had no reason to break anything off.
  EXPECT_EQ(Counts().destroyed, 1);
  EXPECT_EQ(Counts().aborted, 1);
}

}  // namespace
}  // namespace plinth::comm::testing
