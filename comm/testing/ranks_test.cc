// A hang ends the test and says what each rank was doing.
#include "plinth/comm/testing/ranks.h"

#include <unistd.h>

#include <csignal>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plinth::comm::testing {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr absl::Duration kForever = absl::Minutes(10);

TEST(Ranks, ProcessesThatHangAreKilledAndSayWhereTheyWere) {
  const int port = FreePort();
  const absl::Time start = absl::Now();
  const auto outcomes = RunProcesses(
      3,
      [port](int rank) -> std::string {
        const auto comm =
            Communicator::Create(LocalOptions(rank, 3, port, TransportKind::kShm, kForever));
        if (!comm.ok()) return comm.status().ToString();
        const absl::Status met = (*comm)->Barrier();
        // Also when rank 1 has given up the group before this one has seen that all had met.
        if (rank == 0) pause();
        if (!met.ok()) return met.ToString();
        if (rank == 2) return "all is well";
        return (*comm)->Barrier({kForever, CallSite{"train.cc", 33}}).ToString();
      },
      absl::Seconds(3));
  EXPECT_LT(absl::Now() - start, absl::Seconds(30));
  EXPECT_EQ(outcomes[0].signal, SIGKILL);
  EXPECT_EQ(outcomes[0].report,
            "rank 0 has not ended within 3s: it is in no call of group world, of which it made 1");
  // Rank 2 leaves, so that rank 1 need not wait.
  EXPECT_EQ(outcomes[1].signal, 0);
  EXPECT_THAT(outcomes[1].report, HasSubstr("barrier #2"));
  EXPECT_EQ(outcomes[2].report, "all is well");
}

TEST(Ranks, AProcessThatWaitsInACallSaysWhich) {
  const int port = FreePort();
  const auto outcomes = RunProcesses(
      2,
      [port](int rank) -> std::string {
        const auto comm =
            Communicator::Create(LocalOptions(rank, 2, port, TransportKind::kShm, kForever));
        if (!comm.ok()) return comm.status().ToString();
        if (rank == 0) pause();
        return (*comm)->Barrier({kForever, CallSite{"train.cc", 33}}).ToString();
      },
      absl::Seconds(3));
  EXPECT_THAT(outcomes[1].report,
              AllOf(StartsWith("rank 1 has not ended within 3s: "),
                    EndsWith("waiting in barrier #1 of group world at train.cc:33")));
}

TEST(RanksDeathTest, ThreadsThatHangEndTheProcess) {
  const auto hang = [] {
    RunThreads(
        2, kForever,
        [](Communicator& comm) -> std::string {
          if (comm.rank() == 0) absl::SleepFor(kForever);
          return comm.Barrier({kForever, CallSite{"train.cc", 33}}).ToString();
        },
        absl::Milliseconds(300));
  };
  EXPECT_DEATH(
      hang(),
      "2 of 2 ranks have not ended within 300ms; rank 0 is in no call, of which it made 0; "
      "rank 1 is waiting in barrier #1 at train.cc:33");
}

}  // namespace
}  // namespace plinth::comm::testing
