#include "plinth/hardware/base/stop_signal.h"

#include <unistd.h>

#include <csignal>
#include <thread>

#include "gtest/gtest.h"

namespace plinth {
namespace {

TEST(StopSignalTest, KeepsTheFirstSignal) {
  std::signal(SIGHUP, SIG_DFL);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    StopSignal stop;
    EXPECT_EQ(stop.received(), 0);
    kill(getpid(), signal);
    EXPECT_EQ(stop.received(), signal);
    EXPECT_EQ(stop.received(), signal);
  }
}

// A handler's frame could overwrite data of a BLAS that it interrupts.
TEST(StopSignalTest, InstallsNoHandler) {
  const StopSignal stop;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    struct sigaction action = {};
    ASSERT_EQ(sigaction(signal, nullptr, &action), 0);
    EXPECT_TRUE(action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) << signal;
  }
}

TEST(StopSignalTest, ThreadsLeaveTheSignalToItsOwner) {
  StopSignal stop;
  std::thread sender([] { kill(getpid(), SIGTERM); });
  EXPECT_EQ(stop.Wait(), SIGTERM);
  sender.join();
  EXPECT_EQ(stop.received(), SIGTERM);
}

TEST(StopSignalDeathTest, TheSecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        StopSignal stop;
        kill(getpid(), SIGTERM);
        stop.received();
        kill(getpid(), SIGTERM);
      },
      ::testing::KilledBySignal(SIGTERM), "");
}

TEST(StopSignalTest, ALateSignalDoesNotEndAProcessThatIsDone) {
  {
    const StopSignal stop;
    kill(getpid(), SIGTERM);
  }
  SUCCEED();  // alive
}

TEST(StopSignalTest, AnIgnoredSignalStaysIgnored) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  {
    StopSignal stop;
    kill(getpid(), SIGHUP);
    EXPECT_EQ(stop.received(), 0);
  }
  std::signal(SIGHUP, before);
}

}  // namespace
}  // namespace plinth
