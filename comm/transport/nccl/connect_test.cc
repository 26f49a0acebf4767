// How a group over NCCL forms or is refused, against a library that can be told to fail.
#include "plinth/comm/transport/nccl/connect.h"

#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "plinth/comm/transport/mem/connect.h"
#include "plinth/comm/transport/nccl/testing/nccl_ranks.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using NcclConnectTest = NcclTest;

// Forms no group: what all ranks say.
std::vector<std::string> Refusals(const NcclRanks& ranks) {
  return RunRanks(ranks, [](Rank&) { return "formed"; });
}

TEST_F(NcclConnectTest, AMissingLibraryNamesTheRankAndThePackage) {
  EXPECT_THAT(Refusals({.size = 2, .files = {"libno-such-nccl.so.2", kFakeNccl}}),
              Each(AllOf(StartsWith("UNAVAILABLE: rank 0: nccl: cannot load libno-such-nccl.so.2"),
                         HasSubstr("install NVIDIA's NCCL"))));
  EXPECT_THAT(Refusals({.size = 2, .files = {kFakeNccl, "libno-such-cuda.so.1"}}),
              Each(StartsWith("UNAVAILABLE: rank 0: nccl: no NVIDIA driver: cannot load")));
  EXPECT_THAT(Refusals({.size = 2, .files = {"libc.so.6", kFakeNccl}}),
              Each("UNAVAILABLE: rank 0: nccl: libc.so.6 tells no version of NCCL"));
}

TEST_F(NcclConnectTest, AnOldLibraryIsRefusedWithBothVersions) {
  const ScopedEnv version("FAKE_NCCL_VERSION", "21304");
  EXPECT_THAT(Refusals({.size = 2}),
              Each(AllOf(StartsWith("FAILED_PRECONDITION: rank 0: nccl: "),
                         HasSubstr("is version 2.13.4, want 2.14.0 or later"))));
  const ScopedEnv older("FAKE_NCCL_VERSION", "2708");
  EXPECT_THAT(Refusals({.size = 2}), Each(HasSubstr("is version 2.7.8, want 2.14.0 or later")));
}

TEST_F(NcclConnectTest, AGpuThatIsNotThereOrTakenIsRefused) {
  EXPECT_THAT(Refusals({.size = 9}),
              Each("FAILED_PRECONDITION: rank 8: nccl: bound to GPU 8, of 8 that this process "
                   "sees"));
  EXPECT_THAT(
      Refusals({.size = 3, .one_gpu = true}),
      Each(AllOf(StartsWith("FAILED_PRECONDITION: nccl: ranks 0 and 1 are bound to one GPU"),
                 HasSubstr("0000:3b:00.0"))));
  const ScopedEnv absent("FAKE_CUDA_ABSENT", "1");
  EXPECT_THAT(Refusals({.size = 2}), Each("UNAVAILABLE: rank 0: nccl: the driver cannot start: "
                                          "CUDA_ERROR_NO_DEVICE"));
}

TEST_F(NcclConnectTest, AGroupNeedsADevice) {
  const auto ends = ConnectMem(1);
  const auto backend = ConnectNccl(CommOptions(), *ends[0], absl::Now() + kNcclPatience,
                                   NcclFiles{kFakeNccl, kFakeNccl});
  EXPECT_THAT(backend, ::plinth::testing::StatusIs(absl::StatusCode::kFailedPrecondition,
                                                   HasSubstr("needs CommOptions::device")));
}

TEST_F(NcclConnectTest, AnInitErrorNamesTheRankOnAll) {
  const ScopedEnv error("FAKE_NCCL_INIT_ERROR", "2");
  const absl::Time start = absl::Now();
  const auto reports = Refusals({.size = 4});
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));  // long before the deadline
  EXPECT_EQ(reports[2],
            "UNAVAILABLE: rank 2 cannot connect NCCL: unhandled system error (said the fake)");
  for (const int rank : {0, 1, 3}) {
    EXPECT_EQ(
        reports[rank],
        "ABORTED: aborted by rank 2: rank 2 cannot connect NCCL: unhandled system error (said "
        "the fake)");
  }
  // Not of all: a rank that hears of the failure in time does not begin.
  ExpectAllWereAborted();
}

TEST_F(NcclConnectTest, AnIdThatCannotBeMadeFailsAll) {
  const ScopedEnv error("FAKE_NCCL_ID_ERROR", "1");
  EXPECT_THAT(Refusals({.size = 2}),
              Each("UNAVAILABLE: rank 0: nccl: cannot make an id: unhandled system error (said the "
                   "fake)"));
  EXPECT_EQ(Counts().begun, 0);
}

TEST_F(NcclConnectTest, ConnectingEndsAtTheDeadline) {
  const ScopedEnv hang("FAKE_NCCL_INIT_HANG", "1");
  const absl::Time start = absl::Now();
  EXPECT_THAT(Refusals({.size = 3, .timeout = absl::Milliseconds(200)}),
              Each(HasSubstr("NCCL did not connect within 200ms")));
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));
  ExpectAllWereAborted();
}

}  // namespace
}  // namespace plinth::comm::testing
