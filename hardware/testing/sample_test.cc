#include "plinth/hardware/testing/sample.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "plinth/hardware/testing/compare.h"

namespace plinth::testing {
namespace {

TEST(Sample, FillsItsRangeAndRepeats) {
  const auto floats = SampleFloats(10000, 1, -2, 3);
  EXPECT_EQ(floats, SampleFloats(10000, 1, -2, 3));
  EXPECT_NE(floats, SampleFloats(10000, 2, -2, 3));
  const auto [low, high] = std::minmax_element(floats.begin(), floats.end());
  // That none of 10000 values lies in a given 0.01 of 5 has a chance of e^-20.
  EXPECT_GE(*low, -2);
  EXPECT_LT(*low, -1.99f);
  EXPECT_LT(*high, 3);
  EXPECT_GT(*high, 2.99f);
  const auto ints = SampleInts(1000, 3, -1, 4);
  for (int32_t value = -1; value < 4; ++value) {
    EXPECT_GT(std::count(ints.begin(), ints.end(), value), 100) << value;
  }
  EXPECT_EQ(*std::min_element(ints.begin(), ints.end()), -1);
  EXPECT_EQ(*std::max_element(ints.begin(), ints.end()), 3);
}

TEST(Sample, CentralDifferencesFindAGradient) {
  std::vector<double> x = {0.5, -1, 2};
  const auto before = x;
  const auto gradient =
      CentralDifferences(x, [&] { return std::exp(x[0]) + x[1] * x[2] * x[2] * x[2]; });
  EXPECT_EQ(x, before);
  const std::vector<double> expected = {std::exp(0.5), 8, -12};
  EXPECT_TRUE(AllClose(gradient, expected, {.eps = 1e-8, .abs = 1}));
}

}  // namespace
}  // namespace plinth::testing
