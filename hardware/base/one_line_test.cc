#include "plinth/hardware/base/one_line.h"

#include <string_view>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/log.h"
#include "plinth/hardware/base/program.h"

namespace plinth {
namespace {

TEST(OneLine, ControlCharactersAreSpelledOut) {
  EXPECT_EQ(OneLine(std::string_view("a\n\r\x1b[2J\0\x7f", 9)), "a\\n\\r\\x1b[2J\\x00\\x7f");
  EXPECT_EQ(OneLine("tab\t, caf\u00e9 and \\ stay \xFF"), "tab\t, caf\u00e9 and \\ stay \xFF");
  EXPECT_EQ(OneLine(""), "");
}

TEST(OneLine, ErrorsAndLogLinesAreOneLineEach) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(ReportError("tool", absl::NotFoundError("key \"a\nb\" is missing")), 1);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "tool: key \"a\\nb\" is missing\n");
  ::testing::internal::CaptureStderr();
  LOG(INFO) << "passing over x\ny";
  const std::string line = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
  EXPECT_NE(line.find("x\\ny"), line.npos) << line;
}

}  // namespace
}  // namespace plinth
