// GoogleTest matchers for absl::Status and absl::StatusOr<T>.
//
//   EXPECT_THAT(Parse("7"), IsOkAndHolds(7));
//   EXPECT_THAT(Parse("x"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"x\"")));
//   ASSERT_OK_AND_ASSIGN(std::string text, ReadFile(path));
//
// There is no "is not OK": a test names the code it wants.
#ifndef PLINTH_HARDWARE_BASE_STATUS_MATCHERS_H_
#define PLINTH_HARDWARE_BASE_STATUS_MATCHERS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/check.h"

namespace plinth::testing {

MATCHER(IsOk, "is OK") {
  const absl::Status& status = ::plinth::internal::AsStatus(arg);
  *result_listener << status.ToString();
  return status.ok();
}

MATCHER_P(StatusIs, code, "has code " + absl::StatusCodeToString(code)) {
  const absl::Status& status = ::plinth::internal::AsStatus(arg);
  *result_listener << status.ToString();
  return status.code() == code;
}

MATCHER_P2(StatusIs, code, message,
           "has code " + absl::StatusCodeToString(code) + " and a matching message") {
  const absl::Status& status = ::plinth::internal::AsStatus(arg);
  *result_listener << status.ToString();
  return status.code() == code && ::testing::Value(std::string(status.message()), message);
}

MATCHER_P(IsOkAndHolds, value, "is OK and holds a matching value") {
  if (!arg.ok()) {
    *result_listener << arg.status().ToString();
    return false;
  }
  return ::testing::ExplainMatchResult(value, *arg, result_listener);
}

}  // namespace plinth::testing

#define EXPECT_OK(expr) EXPECT_THAT(expr, ::plinth::testing::IsOk())
#define ASSERT_OK(expr) ASSERT_THAT(expr, ::plinth::testing::IsOk())

#define ASSERT_OK_AND_ASSIGN(lhs, expr) \
  PLINTH_ASSERT_ASSIGN_(PLINTH_MATCHERS_CONCAT_(plinth_value_, __LINE__), lhs, expr)
#define PLINTH_ASSERT_ASSIGN_(tmp, lhs, expr)       \
  auto tmp = (expr);                                \
  ASSERT_TRUE(tmp.ok()) << tmp.status().ToString(); \
  lhs = *std::move(tmp)
#define PLINTH_MATCHERS_CONCAT_INNER_(a, b) a##b
#define PLINTH_MATCHERS_CONCAT_(a, b) PLINTH_MATCHERS_CONCAT_INNER_(a, b)

#endif  // PLINTH_HARDWARE_BASE_STATUS_MATCHERS_H_
