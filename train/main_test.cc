// The program as a user and a launcher see it: exit codes, signals, messages.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/comm/testing/ranks.h"
#include "plinth/train/testing/process.h"
#include "plinth/train/testing/tiny_run.h"

namespace plinth::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

std::string Path(const std::string& name) { return ::testing::TempDir() + "/" + name; }

// Waits until the run has kept at least one step.
void AwaitProgress(const config::RunConfig& config) {
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (testing::ReadText(config.train().run_dir() + "/metrics.jsonl").empty()) {
    ASSERT_LT(absl::Now(), deadline);
    absl::SleepFor(absl::Milliseconds(2));
  }
}

// More steps than a test waits for.
config::RunConfig LongRun(const std::string& name) {
  config::RunConfig config = testing::MakeTinyRun(Path(name));
  config.mutable_train()->set_steps(1'000'000);
  return config;
}

TEST(MainTest, SignalsSaveAndExitWith75) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const config::RunConfig config = LongRun(absl::StrCat("signal_", signal));
    testing::Process process(testing::TrainCommand(config), Path("stderr"));
    AwaitProgress(config);
    process.Signal(signal);
    EXPECT_EQ(process.Wait(), 75) << testing::ReadText(Path("stderr"));
    const int64_t step = testing::NewestStep(config.train().run_dir());
    EXPECT_GT(step, 0);

    config::RunConfig rest = config;
    rest.mutable_train()->set_steps(step + 10);  // more than the warm-up
    EXPECT_EQ(testing::Process(testing::TrainCommand(rest), Path("stderr")).Wait(), 0)
        << testing::ReadText(Path("stderr"));
    EXPECT_EQ(testing::NewestStep(config.train().run_dir()), step + 10);
  }
}

TEST(MainTest, ASignalToOneRankStopsBoth) {
  const config::RunConfig config = LongRun("two_ranks");
  const std::string port = absl::StrCat(comm::testing::FreePort());
  const auto environment = [&port](const std::string& rank) {
    return std::vector<std::pair<std::string, std::string>>{{"RANK", rank},
                                                            {"LOCAL_RANK", rank},
                                                            {"WORLD_SIZE", "2"},
                                                            {"LOCAL_WORLD_SIZE", "2"},
                                                            {"MASTER_ADDR", "127.0.0.1"},
                                                            {"MASTER_PORT", port}};
  };
  const auto command = testing::TrainCommand(config);
  testing::Process first(command, Path("stderr_0"), environment("0"));
  testing::Process second(command, Path("stderr_1"), environment("1"));
  AwaitProgress(config);
  second.Signal(SIGTERM);
  EXPECT_EQ(first.Wait(), 75) << testing::ReadText(Path("stderr_0"));
  EXPECT_EQ(second.Wait(), 75) << testing::ReadText(Path("stderr_1"));
  EXPECT_GT(testing::NewestStep(config.train().run_dir()), 0);
}

TEST(MainTest, ASignalEndsTheWaitForOtherRanks) {
  config::RunConfig config = LongRun("waiting");
  const std::string port = absl::StrCat(comm::testing::FreePort());
  for (const char* rank : {"0", "1"}) {  // the other one never comes
    testing::Process process(testing::TrainCommand(config), Path("stderr"),
                             {{"RANK", rank},
                              {"LOCAL_RANK", rank},
                              {"WORLD_SIZE", "2"},
                              {"LOCAL_WORLD_SIZE", "2"},
                              {"MASTER_ADDR", "127.0.0.1"},
                              {"MASTER_PORT", port}});
    EXPECT_FALSE(process.EndsWithin(absl::Milliseconds(300)));
    process.Signal(SIGTERM);
    EXPECT_TRUE(process.EndsWithin(absl::Seconds(5)));
    EXPECT_EQ(process.Wait(), 75) << testing::ReadText(Path("stderr"));
  }
}

// Rank 1 cannot start. Rank 0, which waits for it, does not use up the grace time of 30 s.
TEST(MainTest, ARankThatCannotStartEndsTheGroupAtOnce) {
  const config::RunConfig config = LongRun("one_cannot");
  const std::string train = testing::TrainCommand(config)[0];
  const absl::Time start = absl::Now();
  testing::Process launcher(
      {"cluster/launch/launch", "--ranks=2", testing::TrainCommand(config)[1], "--", "/bin/sh",
       "-c", absl::StrCat("[ $RANK = 1 ] && sleep 0.3 && exit 9; exec ", train, " $0")},
      Path("stderr"));
  EXPECT_EQ(launcher.Wait(), 9) << testing::ReadText(Path("stderr"));
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
  EXPECT_THAT(testing::ReadText(Path("stderr")), HasSubstr("launch: rank 1 exited with 9\n"));
}

// Whether all ranks find the error, or one does and the others only hear of it.
TEST(MainTest, ErrorsOfAGroupAreOneLine) {
  const config::RunConfig config = LongRun("group_errors");
  const std::vector<std::string> train = testing::TrainCommand(config);
  const auto complaint = [&](const std::string& setting) {
    testing::Process launcher(
        {"cluster/launch/launch", "--ranks=2", train[1], setting, "--", train[0]}, Path("stderr"));
    EXPECT_EQ(launcher.Wait(), 1);
    return testing::ReadText(Path("stderr"));
  };
  EXPECT_THAT(complaint("--set=data.train=/no/such/dir"),
              MatchesRegex("\\[rank [01]\\] train: data.train: /no/such/dir[^\n]*\n"));
  std::filesystem::create_directories(config.train().run_dir() + "/metrics.jsonl");
  EXPECT_THAT(complaint("--set=train.seed=3"),
              MatchesRegex("\\[rank 0\\] train: [^\n]*metrics.jsonl[^\n]*\n"));
}

TEST(MainTest, ErrorsAreOneLine) {
  const config::RunConfig config = testing::MakeTinyRun(Path("errors"));
  const auto complaint = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command = testing::TrainCommand(config);
    command.insert(command.end(), more.begin(), more.end());
    EXPECT_EQ(testing::Process(command, Path("stderr")).Wait(), 1);
    return testing::ReadText(Path("stderr"));
  };
  const auto one_line = [](const std::string& what) {
    return AllOf(
        StartsWith("train: "), HasSubstr(what),
        ::testing::ResultOf(
            [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }, 1));
  };
  EXPECT_THAT(complaint({"--set=train.no_such_field=1"}), one_line("no_such_field"));
  EXPECT_THAT(complaint({"--set=data.train=/no/such/dir"}), one_line("/no/such/dir"));
  EXPECT_THAT(complaint({"--set=data.tokenizer=/no/tokenizer"}), one_line("/no/tokenizer"));
  EXPECT_THAT(complaint({"--set=train.micro_batch=3"}), one_line("train.global_batch"));
  EXPECT_THAT(complaint({"--set=hardware.device=CUDA"}), one_line("cuda"));
}

}  // namespace
}  // namespace plinth::train
