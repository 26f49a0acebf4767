// The comparators of numeric tests: how close is a result to what it should be?
#ifndef PLINTH_HARDWARE_TESTING_COMPARE_H_
#define PLINTH_HARDWARE_TESTING_COMPARE_H_

#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <vector>

#include "gtest/gtest.h"

namespace plinth {

// A value may differ from the expected e by eps * (abs + rel * |e|). Derive them: eps is a
// rounding unit times the number of roundings, abs the magnitude of the terms summed.
struct Tolerance {
  double eps = 0;
  double abs = 0;
  double rel = 1;
};

inline double Bound(double expected, const Tolerance& tolerance) {
  return tolerance.eps * (tolerance.abs + tolerance.rel * std::fabs(expected));
}

// An infinity is close to itself only; NaN, on either side, is close to nothing.
inline bool IsClose(double actual, double expected, const Tolerance& tolerance) {
  return actual == expected ||
         (std::isfinite(expected) && std::fabs(actual - expected) <= Bound(expected, tolerance));
}

// EXPECT_TRUE(AllClose(actual, expected, {.eps = .., .abs = .., .rel = ..})): every value
// passes IsClose, and the lengths agree. A failure states how many differ, and index,
// value, expectation and bound of the first and of the worst.
template <typename Actual, typename Expected>
::testing::AssertionResult AllClose(const std::vector<Actual>& actual,
                                    const std::vector<Expected>& expected,
                                    const Tolerance& tolerance) {
  if (actual.size() != expected.size()) {
    return ::testing::AssertionFailure()
           << "has " << actual.size() << " values, want " << expected.size();
  }
  size_t wrong = 0, first = 0, worst = 0;
  double worst_excess = -1;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double a = actual[i], e = expected[i];
    if (IsClose(a, e, tolerance)) continue;
    if (wrong++ == 0) first = i;
    const double ratio = std::fabs(a - e) / Bound(e, tolerance);
    const double excess = std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio;
    if (excess > worst_excess) worst_excess = excess, worst = i;
  }
  if (wrong == 0) return ::testing::AssertionSuccess();
  std::ostringstream out;
  out.precision(9);
  out << wrong << " of " << actual.size() << " values differ";
  for (const size_t i : {first, worst}) {
    out << (i == first ? "; first" : "; worst") << " [" << i << "] is " << actual[i] << ", want "
        << expected[i] << " +- " << Bound(expected[i], tolerance);
    if (first == worst) break;
  }
  return ::testing::AssertionFailure() << out.str();
}

// Same length and the same bits: tells +0 from -0, and accepts the same NaN.
template <typename T>
::testing::AssertionResult AllSameBits(const std::vector<T>& actual,
                                       const std::vector<T>& expected) {
  if (actual.size() != expected.size()) {
    return ::testing::AssertionFailure()
           << "has " << actual.size() << " values, want " << expected.size();
  }
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::memcmp(&actual[i], &expected[i], sizeof(T)) == 0) continue;
    std::ostringstream out;
    out.precision(9);
    out << "value [" << i << "] is " << actual[i] << ", want the bits of " << expected[i];
    return ::testing::AssertionFailure() << out.str();
  }
  return ::testing::AssertionSuccess();
}

}  // namespace plinth

#endif  // PLINTH_HARDWARE_TESTING_COMPARE_H_
