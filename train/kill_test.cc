// Training that is killed at random moments, and started again.
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/rng.h"
#include "plinth/train/testing/process.h"
#include "plinth/train/testing/saving_run.h"
#include "plinth/train/testing/tiny_run.h"

namespace plinth::train {
namespace {

config::RunConfig MakeRun(const std::string& name) {
  return testing::MakeSavingRun(::testing::TempDir() + "/" + name);
}

TEST(KillTest, AlwaysGoesOnFromACompleteCheckpoint) {
  const char* wanted = std::getenv("KILLS");
  const int64_t kills = wanted != nullptr ? std::atoll(wanted) : 3;
  const std::string log = ::testing::TempDir() + "/stderr";

  const config::RunConfig straight = MakeRun("straight");
  ASSERT_EQ(testing::Process(testing::TrainCommand(straight), log).Wait(), 0)
      << testing::ReadText(log);
  const auto expected = testing::NewestTensors(straight.train().run_dir());

  int64_t killed = 0;
  for (int64_t run = 0; killed < kills; ++run) {
    const config::RunConfig config = MakeRun(absl::StrCat("killed_", run));
    int64_t newest = -1;
    while (true) {
      testing::Process process(testing::TrainCommand(config), log);
      const double part = RandomUniform(RngKey(1, "kill"), run, killed);
      const bool ended = killed < kills && process.EndsWithin(absl::Milliseconds(250) * part);
      if (!ended && killed < kills) process.Signal(SIGKILL);
      const int code = process.Wait();
      ASSERT_TRUE(code == 0 || code == -SIGKILL) << code << ": " << testing::ReadText(log);
      const int64_t step = testing::NewestStep(config.train().run_dir());
      ASSERT_GE(step, newest) << "a kill lost a checkpoint";
      newest = step;
      if (code == 0) break;
      ++killed;
    }
    EXPECT_EQ(newest, config.train().steps());
    EXPECT_TRUE(testing::NewestTensors(config.train().run_dir()) == expected) << "bit for bit";
    testing::ExpectEachStepOnce(config);
  }
}

}  // namespace
}  // namespace plinth::train
