#include "plinth/infer/serve/metrics/training_log.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::infer {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::HasSubstr;

constexpr int64_t kMost = 1 << 20;

class TrainingLogTest : public ::testing::Test {
 protected:
  TrainingLogTest() {
    run_ = ::testing::TempDir() + "/" +
           ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(run_);
    std::filesystem::create_directories(run_);
  }
  void Append(const std::string& text) {
    std::ofstream(run_ + "/metrics.jsonl", std::ios::app | std::ios::binary) << text;
  }
  std::string run_;
};

TEST_F(TrainingLogTest, FollowsAFileThatGrows) {
  Append("{\"step\":1}\n{\"st");
  ASSERT_OK_AND_ASSIGN(TrainingLines got, ReadTrainingLines(run_, 0, kMost));
  EXPECT_EQ(got.lines, "{\"step\":1}\n");
  EXPECT_EQ(got.next_offset, 11);
  Append("ep\":2}\n");
  ASSERT_OK_AND_ASSIGN(got, ReadTrainingLines(run_, 11, kMost));
  EXPECT_EQ(got.lines, "{\"step\":2}\n");
  EXPECT_EQ(got.next_offset, 22);
  ASSERT_OK_AND_ASSIGN(got, ReadTrainingLines(run_, 22, kMost));
  EXPECT_EQ(got.lines, "");
  EXPECT_EQ(got.next_offset, 22);
}

// Whatever the bound, following it gives every line that fits, each once.
TEST_F(TrainingLogTest, AnyBoundGivesEveryLineOnce) {
  std::string all;
  for (int i = 0; i < 30; ++i) all += "{\"step\":" + std::to_string(i * i) + "}\n";
  Append(all);
  for (int64_t bound : {13, 14, 25, 100, 10000}) {
    std::string got;
    int64_t offset = 0;
    for (int i = 0; i < 100 && offset < static_cast<int64_t>(all.size()); ++i) {
      ASSERT_OK_AND_ASSIGN(const TrainingLines part, ReadTrainingLines(run_, offset, bound));
      EXPECT_LE(static_cast<int64_t>(part.lines.size()), bound);
      got += part.lines;
      offset = part.next_offset;
    }
    EXPECT_EQ(got, all) << bound;
  }
}

TEST_F(TrainingLogTest, ALineLongerThanTheBoundIsPassedOver) {
  Append(std::string(25, 'x') + "\n{}\n");
  std::string got;
  for (int64_t offset = 0; offset < 29;) {
    ASSERT_OK_AND_ASSIGN(const TrainingLines part, ReadTrainingLines(run_, offset, 10));
    ASSERT_GT(part.next_offset, offset);
    offset = part.next_offset;
    got = part.lines;
  }
  EXPECT_THAT(got, ::testing::EndsWith("{}\n"));
}

TEST_F(TrainingLogTest, AnOffsetBeyondTheEndStartsAnew) {
  Append("{}\n");
  ASSERT_OK_AND_ASSIGN(const TrainingLines got, ReadTrainingLines(run_, 99, kMost));
  EXPECT_EQ(got.lines, "{}\n");
  EXPECT_EQ(got.next_offset, 3);
}

TEST_F(TrainingLogTest, SaysWhatIsMissing) {
  EXPECT_THAT(ReadTrainingLines("", 0, kMost),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("serve.metrics_run is not set")));
  EXPECT_THAT(ReadTrainingLines(run_, 0, kMost),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(run_ + "/metrics.jsonl")));
  EXPECT_THAT(ReadTrainingLines(run_, -1, kMost), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace plinth::infer
