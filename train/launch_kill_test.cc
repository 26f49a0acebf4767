// Two ranks under the launcher: one of them, the launcher or both are killed at random moments,
// and the run is started again.
#include <dirent.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/rng.h"
#include "plinth/train/testing/process.h"
#include "plinth/train/testing/saving_run.h"
#include "plinth/train/testing/tiny_run.h"

namespace plinth::train {
namespace {

// A start of the group and about a hundred steps on two idle cores.
constexpr absl::Duration kLongestLife = absl::Milliseconds(600);

config::RunConfig MakeRun(const std::string& name) {
  config::RunConfig config = testing::MakeSavingRun(::testing::TempDir() + "/" + name);
  config.mutable_cluster()->set_ranks(2);
  config.mutable_cluster()->set_max_restarts(1);  // the next start is the test's
  config.mutable_comm()->set_transport(config::SHM);
  return config;
}

std::vector<std::string> LaunchCommand(const config::RunConfig& config) {
  const std::vector<std::string> train = testing::TrainCommand(config);
  return {"cluster/launch/launch", train[1], "--", train[0]};
}

std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  DIR* const processes = opendir("/proc");
  CHECK(processes != nullptr);
  while (const dirent* entry = readdir(processes)) {
    const pid_t pid = std::atoi(entry->d_name);
    std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
    std::string number, name, state;
    pid_t its_parent = 0;
    if (pid > 0 && stat >> number >> name >> state >> its_parent && its_parent == parent) {
      children.push_back(pid);
    }
  }
  closedir(processes);
  return children;
}

// Kills a rank, the launcher, or both; which depends on `draw`. True when a signal was sent.
bool Strike(testing::Process& launcher, uint64_t draw) {
  const std::vector<pid_t> ranks = ChildrenOf(launcher.pid());
  const bool strikes_launcher = ranks.empty() || draw % 3 != 0;
  bool struck = strikes_launcher;
  if (strikes_launcher && draw % 2 == 0) launcher.Signal(SIGKILL);
  if (!ranks.empty() && draw % 3 != 1) {
    struck |= kill(ranks[draw / 6 % ranks.size()], SIGKILL) == 0;
  }
  if (strikes_launcher && draw % 2 != 0) launcher.Signal(SIGKILL);
  return struck;
}

// Ranks whose launcher is gone became children of this process; they must not live on.
bool AllRanksEnd() {
  const absl::Time give_up = absl::Now() + absl::Seconds(10);
  while (absl::Now() < give_up) {
    const pid_t reaped = waitpid(-1, nullptr, WNOHANG);
    if (reaped < 0) return true;
    if (reaped == 0) absl::SleepFor(absl::Milliseconds(1));
  }
  return false;
}

TEST(LaunchKillTest, TwoRanksAlwaysGoOnFromACompleteCheckpoint) {
  const char* wanted = std::getenv("KILLS");
  const int64_t kills = wanted != nullptr ? std::atoll(wanted) : 4;
  const std::string log = ::testing::TempDir() + "/stderr";
  CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);

  const config::RunConfig straight = MakeRun("straight");
  ASSERT_EQ(testing::Process(LaunchCommand(straight), log).Wait(), 0) << testing::ReadText(log);
  const auto expected = testing::NewestTensors(straight.train().run_dir());

  int64_t killed = 0;
  for (int64_t run = 0; killed < kills; ++run) {
    const config::RunConfig config = MakeRun(absl::StrCat("killed_", run));
    int64_t newest = -1;
    for (int code = -1; code != 0;) {
      testing::Process launcher(LaunchCommand(config), log);
      bool struck = false;
      while (killed < kills) {
        const uint64_t key = RngKey(1, "kill");
        if (launcher.EndsWithin(kLongestLife * RandomUniform(key, run, killed))) break;
        if (!Strike(launcher, RandomBits(key, run, killed) >> 16)) continue;
        struck = true;
        ++killed;
      }
      code = launcher.Wait();
      ASSERT_TRUE(AllRanksEnd()) << "a rank outlives its launcher";
      // 1: the other rank noticed first that its peer was gone.
      const bool expected_end =
          code == 0 || (struck && (code == 1 || code == -SIGKILL || code == 128 + SIGKILL));
      ASSERT_TRUE(expected_end) << code << ": " << testing::ReadText(log);
      const int64_t step = testing::NewestStep(config.train().run_dir());
      ASSERT_GE(step, newest) << "a kill lost a checkpoint";
      newest = step;
    }
    EXPECT_EQ(newest, config.train().steps());
    EXPECT_TRUE(testing::NewestTensors(config.train().run_dir()) == expected) << "bit for bit";
    testing::ExpectEachStepOnce(config);
  }
}

}  // namespace
}  // namespace plinth::train
