#include "plinth/comm/transport/shm/connect.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "absl/time/clock.h"
#include "plinth/comm/testing/ranks.h"
#include "plinth/comm/transport/shm/process.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::plinth::comm::testing::FreePort;
using ::plinth::comm::testing::LocalOptions;
using ::plinth::comm::testing::RunProcesses;

TEST(ConnectShm, EveryRankLearnsThatRoomIsShort) {
  const int port = FreePort();
  const auto outcomes = RunProcesses(2, [&](int rank) -> std::string {
    const CommOptions options = LocalOptions(rank, 2, port, TransportKind::kShm, absl::Seconds(20));
    const absl::Time deadline = absl::Now() + options.timeout;
    const auto store = Store::Open(options, deadline);
    if (!store.ok()) return store.status().ToString();
    const auto transport = ConnectShm(options, **store, deadline, int64_t{1} << 40);
    // Rank 0 must not take the store away before rank 1 has read.
    if (rank == 1)
      return (*store)->Set("read", "", deadline).ok() ? transport.status().ToString() : "";
    return (*store)->Wait("read", deadline).ok() ? transport.status().ToString() : "";
  });
  EXPECT_THAT(
      outcomes[0].report,
      ::testing::ContainsRegex("^RESOURCE_EXHAUSTED: need [0-9]+ MiB in /dev/shm, have [0-9]+: "));
  EXPECT_THAT(outcomes[1].report,
              ::testing::ContainsRegex(
                  "^RESOURCE_EXHAUSTED: rank 0: need [0-9]+ MiB in /dev/shm, have [0-9]+: "));
}

TEST(ConnectShm, ARankThatDiesWhileTheGroupFormsIsNamed) {
  const int port = FreePort();
  const auto outcomes = RunProcesses(3, [&](int rank) -> std::string {
    const CommOptions options = LocalOptions(rank, 3, port, TransportKind::kShm, absl::Seconds(20));
    const absl::Time deadline = absl::Now() + options.timeout;
    if (rank == 2) return "";          // never comes: the group keeps forming
    if (rank == 1) ualarm(300000, 0);  // SIGALRM's default ends the process
    const auto store = Store::Open(options, deadline);
    if (!store.ok()) return store.status().ToString();
    return ConnectShm(options, **store, deadline).status().ToString();
  });
  EXPECT_EQ(outcomes[1].signal, SIGALRM);
  EXPECT_EQ(
      outcomes[0].report,
      "UNAVAILABLE: rank 2 did not join group world, and rank 1 did not stay: process is gone");
}

TEST(Process, IsGoneWhenKilledEvenBeforeItIsReaped) {
  EXPECT_TRUE(ProcessStartTicks(getpid()).has_value());
  EXPECT_EQ(ProcessStartTicks(getpid()), ProcessStartTicks(getpid()));
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  EXPECT_TRUE(ProcessStartTicks(child).has_value());
  kill(child, SIGKILL);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, child, &info, WEXITED | WNOWAIT), 0);  // a zombie now
  EXPECT_EQ(ProcessStartTicks(child), std::nullopt);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(ProcessStartTicks(child), std::nullopt);
}

}  // namespace
}  // namespace plinth::comm
