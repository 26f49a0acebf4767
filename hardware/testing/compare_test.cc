#include "plinth/hardware/testing/compare.h"

#include <limits>

namespace plinth {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
using Values = std::vector<double>;

TEST(IsClose, BoundIsInclusiveAndGrowsWithTheExpectation) {
  const Tolerance tolerance{.eps = 0.25, .abs = 1, .rel = 2};
  EXPECT_TRUE(IsClose(0.25, 0, tolerance));
  EXPECT_FALSE(IsClose(0.3, 0, tolerance));
  EXPECT_TRUE(IsClose(10 + 5.25, 10, tolerance));
  EXPECT_TRUE(IsClose(10 - 5.25, 10, tolerance));
  EXPECT_FALSE(IsClose(10 + 5.5, 10, tolerance));
}

TEST(IsClose, SeesNegativeValues) {
  const Tolerance tolerance{.eps = 1e-3};
  EXPECT_TRUE(IsClose(-1.0005, -1, tolerance));
  EXPECT_FALSE(IsClose(-1.002, -1, tolerance));
  EXPECT_FALSE(IsClose(-0.5, -1, tolerance));
  EXPECT_FALSE(IsClose(-1, 1, tolerance));
}

TEST(IsClose, NanIsNeverCloseAndInfinityOnlyToItself) {
  const Tolerance wide{.eps = 1e30, .abs = 1};
  EXPECT_FALSE(IsClose(kNan, 0, wide));
  EXPECT_FALSE(IsClose(0, kNan, wide));
  EXPECT_FALSE(IsClose(kNan, kNan, wide));
  EXPECT_FALSE(IsClose(kNan, kInf, wide));
  EXPECT_TRUE(IsClose(kInf, kInf, wide));
  EXPECT_TRUE(IsClose(-kInf, -kInf, wide));
  EXPECT_FALSE(IsClose(kInf, -kInf, wide));
  EXPECT_FALSE(IsClose(1e308, kInf, wide));
  EXPECT_FALSE(IsClose(kInf, 1, wide));
}

TEST(AllClose, ReportsLengthFirstAndWorst) {
  const Tolerance tolerance{.eps = 1e-3, .abs = 1};
  EXPECT_TRUE(AllClose(Values{}, Values{}, tolerance));
  EXPECT_TRUE(AllClose(std::vector<float>{1, -2}, Values{1, -2}, tolerance));
  EXPECT_FALSE(AllClose(Values{1}, Values{1, 2}, tolerance));
  EXPECT_FALSE(AllClose(Values{}, Values{1}, tolerance));
  const auto result = AllClose(Values{1, 2, -3, 4}, Values{1, 2.5, -9, 4}, tolerance);
  ASSERT_FALSE(result);
  EXPECT_NE(std::string(result.message()).find("2 of 4"), std::string::npos) << result.message();
  EXPECT_NE(std::string(result.message()).find("first [1] is 2"), std::string::npos);
  EXPECT_NE(std::string(result.message()).find("worst [2] is -3"), std::string::npos);
  const auto nan = AllClose(Values{5, kNan}, Values{1, 1}, tolerance);
  EXPECT_NE(std::string(nan.message()).find("worst [1]"), std::string::npos) << nan.message();
}

TEST(AllSameBits, TellsZerosApart) {
  EXPECT_TRUE(AllSameBits(Values{0.0, kNan}, Values{0.0, kNan}));
  EXPECT_FALSE(AllSameBits(Values{-0.0}, Values{0.0}));
  EXPECT_FALSE(AllSameBits(Values{0.0}, Values{}));
  EXPECT_FALSE(AllSameBits(Values{1.0, 1.0}, Values{1.0, std::nextafter(1.0, 2)}));
}

}  // namespace
}  // namespace plinth
