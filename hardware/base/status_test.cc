#include <string>

#include "gtest/gtest.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth {
namespace {

using ::plinth::testing::IsOkAndHolds;
using ::plinth::testing::StatusIs;
using ::testing::HasSubstr;

absl::StatusOr<int> Half(int n) {
  if (n % 2 != 0) return absl::InvalidArgumentError("odd");
  return n / 2;
}

absl::StatusOr<int> Quarter(int n) {
  ASSIGN_OR_RETURN(const int half, Half(n), _ << "first half of " << n);
  ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

absl::Status Check(int n) {
  if (n > 0) RETURN_IF_ERROR(Half(n).status()) << "n=" << n;
  return absl::OkStatus();
}

TEST(StatusMacros, AddContextAndKeepTheCode) {
  EXPECT_THAT(Quarter(12), IsOkAndHolds(3));
  EXPECT_THAT(Quarter(3), StatusIs(absl::StatusCode::kInvalidArgument, "first half of 3: odd"));
  EXPECT_THAT(Quarter(6), StatusIs(absl::StatusCode::kInvalidArgument, "odd"));
  EXPECT_THAT(Check(5), StatusIs(absl::StatusCode::kInvalidArgument, "n=5: odd"));
  EXPECT_OK(Check(4));
}

TEST(CheckDeathTest, PrintsBothValues) {
  CHECK_EQ(1 + 1, 2) << "not printed";
  EXPECT_DEATH(CHECK_EQ(1 + 1, 3) << "detail", "1 \\+ 1 == 3 \\(2 vs. 3\\) detail");
  EXPECT_DEATH(CHECK(false) << "why", "check failed: false why");
  EXPECT_DEATH(CHECK_OK(Half(1)), "INVALID_ARGUMENT: odd");
}

}  // namespace
}  // namespace plinth
