#include "plinth/cluster/launch/local.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::cluster {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::HasSubstr;

class RunLocalTest : public ::testing::Test {
 protected:
  // Ranks run this shell script in an empty directory of their own test.
  JobSpec Shell(const std::string& script, int ranks) {
    dir_ = std::filesystem::path(::testing::TempDir()) /
           ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
    JobSpec job;
    job.command = {"/bin/sh", "-c", "cd " + dir_.string() + "; " + script};
    job.ranks = ranks;
    job.grace = absl::Seconds(5);
    return job;
  }
  std::string Read(const std::string& name) {
    std::stringstream text;
    text << std::ifstream(dir_ / name).rdbuf();
    return text.str();
  }

  std::filesystem::path dir_;
  std::atomic<int> stop_{0};
};

TEST_F(RunLocalTest, RanksSeeTorchrunsVariables) {
  ASSERT_OK_AND_ASSIGN(
      const GroupResult result,
      RunLocal(Shell("echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR > r$RANK;"
                     " echo $MASTER_PORT > port$RANK",
                     3),
               stop_));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(Read("r2"), "2 2 3 3 127.0.0.1\n");
  EXPECT_EQ(Read("port0"), Read("port2"));
  EXPECT_GT(std::atoi(Read("port0").c_str()), 0);
}

TEST_F(RunLocalTest, LinesComeBehindTheirRank) {
  ::testing::internal::CaptureStdout();
  ASSERT_OK(RunLocal(Shell("echo one; printf 'two\\nlast without end'", 2), stop_));
  const std::string out = ::testing::internal::GetCapturedStdout();
  for (const char* line : {"[rank 0] one\n", "[rank 0] two\n", "[rank 1] last without end\n"}) {
    EXPECT_THAT(out, HasSubstr(line));
  }
}

TEST_F(RunLocalTest, AnErrorOfAllRanksIsSaidOnce) {
  const auto count = [](const std::string& text, const std::string& part) {
    int found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++found;
    return found;
  };
  ::testing::internal::CaptureStderr();
  ASSERT_OK_AND_ASSIGN(const GroupResult result,
                       RunLocal(Shell("echo sh: no data >&2; echo sh: $RANK >&2; echo note >&2;"
                                      " touch r$RANK; while [ ! -e r0 ] || [ ! -e r1 ];"
                                      " do sleep 0.01; done; exit 4",
                                      2),
                                stop_));
  const std::string err = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(count(err, "] sh: no data\n"), 1) << err;
  EXPECT_EQ(count(err, "] sh: 0\n") + count(err, "] sh: 1\n"), 2) << err;
  EXPECT_EQ(count(err, "] note\n"), 2) << err;
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_TRUE(result.explained);
  ASSERT_OK_AND_ASSIGN(const GroupResult silent,
                       RunLocal(Shell("echo note >&2; exit 4", 2), stop_));
  EXPECT_FALSE(silent.explained);
  // What a rank says that was stopped on request is no reason.
  ASSERT_OK_AND_ASSIGN(const GroupResult stopped,
                       RunLocal(Shell("[ $RANK = 0 ] && { touch r0; while [ ! -e r1 ]; do sleep"
                                      " 0.01; done; exit 4; }; trap 'echo sh: stopped >&2; exit 75'"
                                      " TERM; touch r1; while :; do sleep 0.01; done",
                                      2),
                                stop_));
  EXPECT_EQ(stopped.exit_code, 4);
  EXPECT_FALSE(stopped.explained);
  // That the launcher ends the others is no news; that somebody else kills one is.
  for (const bool by_us : {true, false}) {
    const char* rank_1 = by_us ? ":" : "trap 'kill -KILL $$' TERM";
    ASSERT_OK_AND_ASSIGN(
        const GroupResult ended,
        RunLocal(Shell(absl::StrCat("if [ $RANK = 0 ]; then while [ ! -e t1 ]; do sleep 0.01; done;"
                                    " echo sh: no data >&2; exit 4; fi; ",
                                    rank_1, "; touch t1; while :; do sleep 0.01; done"),
                       2),
                 stop_));
    EXPECT_EQ(ended.exit_code, 4);
    EXPECT_EQ(ended.explained, by_us);
  }
  ASSERT_OK_AND_ASSIGN(const GroupResult killed,
                       RunLocal(Shell("echo sh: x >&2; kill -KILL $$", 1), stop_));
  EXPECT_FALSE(killed.explained);  // that it was killed is news
}

TEST_F(RunLocalTest, RanksKnowThatTheirLinesAreMarked) {
  for (const int ranks : {1, 2}) {
    ASSERT_OK(RunLocal(Shell("echo \"$PLINTH_LINES_MARKED\" > marked", ranks), stop_));
    EXPECT_EQ(Read("marked"), ranks == 1 ? "\n" : "1\n");
  }
}

TEST_F(RunLocalTest, OneFailureEndsTheGroup) {
  const absl::Time start = absl::Now();
  ASSERT_OK_AND_ASSIGN(const GroupResult result,
                       RunLocal(Shell("[ $RANK = 1 ] && exit 7; exec sleep 60", 3), stop_));
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(result.verdict, "rank 1 exited with 7");
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

TEST_F(RunLocalTest, ADeafRankIsKilledAfterTheGraceTime) {
  JobSpec job = Shell(
      "if [ $RANK = 0 ]; then while [ ! -e deaf ]; do sleep 0.01; done; kill -KILL $$; fi;"
      "trap '' TERM; touch deaf; while :; do sleep 1; done",
      2);
  job.grace = absl::Milliseconds(300);
  const absl::Time start = absl::Now();
  ASSERT_OK_AND_ASSIGN(const GroupResult result, RunLocal(job, stop_));
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  EXPECT_EQ(result.verdict, "rank 0 was killed by SIGKILL (9)");
  EXPECT_GE(absl::Now() - start, job.grace);
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

TEST_F(RunLocalTest, RestartsWithinTheBudget) {
  // Each start appends a mark; rank 0 succeeds at the third.
  JobSpec job = Shell("[ $RANK = 1 ] && exit 0; echo x >> starts; [ $(wc -l < starts) -ge 3 ]", 2);
  job.max_restarts = 5;
  ASSERT_OK_AND_ASSIGN(const GroupResult result, RunLocal(job, stop_));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.restarts, 2);

  job = Shell("exit 3", 1);
  job.max_restarts = 1;
  ASSERT_OK_AND_ASSIGN(const GroupResult spent, RunLocal(job, stop_));
  EXPECT_EQ(spent.exit_code, 3);
  EXPECT_EQ(spent.restarts, 1);
}

TEST_F(RunLocalTest, AStopSignalIsPassedOnAndNotRestarted) {
  JobSpec job = Shell("trap 'exit 75' TERM; touch ready$RANK; while :; do sleep 0.05; done", 2);
  job.max_restarts = 9;
  std::thread stopper([this] {
    while (!std::filesystem::exists(dir_ / "ready0") || !std::filesystem::exists(dir_ / "ready1")) {
      absl::SleepFor(absl::Milliseconds(10));
    }
    stop_ = SIGTERM;
  });
  const absl::StatusOr<GroupResult> result = RunLocal(job, stop_);
  stopper.join();
  ASSERT_OK(result);
  EXPECT_EQ(result->exit_code, kExitInterrupted);
  EXPECT_EQ(result->restarts, 0);
}

TEST_F(RunLocalTest, BadJobsAreOneClearError) {
  JobSpec job;
  job.command = {"/no/such/program"};
  EXPECT_THAT(RunLocal(job, stop_),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("\"/no/such/program\": No such file or directory")));
  job.command.clear();
  job.ranks = 0;
  EXPECT_THAT(RunLocal(job, stop_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "job: no program to run; ranks must be 1 to 1024, is 0"));
  job.ranks = 1'000'000;
  EXPECT_THAT(RunLocal(job, stop_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is 1000000")));
}

}  // namespace
}  // namespace plinth::cluster
