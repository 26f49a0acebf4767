#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "boost/json.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/train/metrics/append_file.h"
#include "plinth/train/metrics/crc32c.h"
#include "plinth/train/metrics/event_writer.h"
#include "plinth/train/metrics/reporter.h"
#include "plinth/train/metrics/step_record.h"

namespace plinth::train {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Crc32cTest, MatchesPublishedVectors) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);  // RFC 3720, B.4
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

TEST(FrameRecordTest, HoldsLengthAndMessageBetweenChecksums) {
  const std::string record = FrameRecord("abc");
  ASSERT_EQ(record.size(), 8u + 4 + 3 + 4);
  EXPECT_EQ(record.substr(0, 8), std::string("\x03\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(12, 3), "abc");
}

TEST(StepRecordTest, JsonHasEveryFieldAndSurvivesNan) {
  StepRecord record = {.step = 3, .steps = 9, .loss = 0.1, .tokens = 77};
  record.gradient_norm = std::numeric_limits<double>::quiet_NaN();
  const auto plain = boost::json::parse(ToJson(record, 5)).as_object();
  EXPECT_EQ(plain.at("step").as_int64(), 3);
  EXPECT_EQ(plain.at("loss").as_double(), 0.1);
  EXPECT_TRUE(plain.at("gradient_norm").is_null());
  EXPECT_FALSE(plain.contains("eval_loss"));

  record.eval = EvalRecord{.loss = 2, .bits_per_byte = 1.5};
  const auto with_eval = boost::json::parse(ToJson(record, 5)).as_object();
  EXPECT_EQ(with_eval.at("eval_bits_per_byte").to_number<double>(), 1.5);
}

TEST(StepRecordTest, LineShowsOnlyWhatIsKnown) {
  StepRecord record = {.step = 3, .steps = 9, .loss = 0.5, .tokens_per_second = 12345};
  record.seconds_left = 3700;
  EXPECT_THAT(ToLine(record), HasSubstr("step 3/9  loss 0.5000  12.3k tok/s"));
  EXPECT_THAT(ToLine(record), HasSubstr("1h01m left"));
  EXPECT_THAT(ToLine(record), Not(HasSubstr("FLOP")));
  record.eval = EvalRecord{.loss = 2};
  EXPECT_THAT(ToLine(record), Not(HasSubstr("bits/byte")));
  record.flops_per_second = 4.1e10;
  record.mfu = 0.52;
  EXPECT_THAT(ToLine(record), HasSubstr("41.0GFLOP/s (52% MFU)"));
}

TEST(AppendFileTest, KeepsWhatWasThere) {
  const std::string path = ::testing::TempDir() + "/append_keeps";
  std::remove(path.c_str());
  for (const char* part : {"one\n", "two\n"}) {
    ASSERT_OK_AND_ASSIGN(AppendFile file, AppendFile::Open(path));
    EXPECT_OK(file.Append(part));
  }
  EXPECT_EQ(ReadAll(path), "one\ntwo\n");
}

TEST(AppendFileTest, NamesThePathAndTheFullDisk) {
  ASSERT_OK_AND_ASSIGN(AppendFile full, AppendFile::Open("/dev/full"));
  EXPECT_THAT(full.Append("x"),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("/dev/full")));
  EXPECT_THAT(AppendFile::Open("/nonexistent/file").status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("/nonexistent/file")));
}

TEST(EventWriterTest, FileStartsWithTheVersionRecord) {
  ASSERT_OK_AND_ASSIGN(EventWriter writer, EventWriter::Create(::testing::TempDir()));
  EXPECT_OK(writer.Write(7, std::vector<Scalar>{{"train/loss", 1.25}}));
  const std::string bytes = ReadAll(writer.path());
  EXPECT_THAT(bytes.substr(0, 60), HasSubstr("brain.Event:2"));
  EXPECT_THAT(bytes, HasSubstr("train/loss"));
}

TEST(ReporterTest, AResumedRunHasEachStepOnce) {
  const std::string run = ::testing::TempDir() + "/reporter_run";
  const auto report = [&run](int64_t resumed, std::vector<int64_t> steps) {
    ASSERT_OK_AND_ASSIGN(auto reporter,
                         Reporter::Create({.run_dir = run, .resumed_step = resumed}));
    for (const int64_t step : steps) reporter->Report({.step = step, .steps = 9});
  };
  report(0, {1, 2, 3});
  std::ofstream(run + "/metrics.jsonl", std::ios::app) << "{\"step\":4,\"lo";  // killed here
  report(2, {3, 4});
  std::istringstream lines(ReadAll(run + "/metrics.jsonl"));
  std::vector<int64_t> steps;
  for (std::string line; std::getline(lines, line);) {
    steps.push_back(boost::json::parse(line).at("step").as_int64());
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace plinth::train
