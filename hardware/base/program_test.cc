#include "plinth/hardware/base/program.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plinth {
namespace {

using ::testing::ExitedWithCode;

TEST(PrintReportTest, ATextGoesToStdoutAsItIs) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(PrintReport("tool", std::string("100 %d\n")), EXIT_SUCCESS);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "100 %d\n");
}

TEST(PrintReportTest, AnErrorIsOneLineOnStderr) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(PrintReport("tool", absl::NotFoundError("/a: no such file, 100 %d")), EXIT_FAILURE);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "tool: /a: no such file, 100 %d\n");
}

TEST(PrintReportTest, AFullStdoutIsAnError) {
  const auto print = [] {
    if (std::freopen("/dev/full", "w", stdout) == nullptr) std::exit(9);
    std::exit(PrintReport("tool", std::string("text")));
  };
  EXPECT_EXIT(print(), ExitedWithCode(EXIT_FAILURE), "tool: cannot write to stdout");
}

}  // namespace
}  // namespace plinth
