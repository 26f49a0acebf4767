#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hardware/kernels/vector_math_test.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "plinth/hardware/kernels/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace plinth {
namespace HWY_NAMESPACE {

// Whole vectors, each in its own place, with a padded one at the end.
template <class F>
void Map(const float* x, float* y, size_t n, const F& f) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, x + i)), d, y + i);
  if (i == n) return;
  HWY_ALIGN float last[HWY_MAX_BYTES / sizeof(float)] = {};
  std::memcpy(last, x + i, (n - i) * sizeof(float));
  hn::Store(f(d, hn::Load(d, last)), d, last);
  std::memcpy(y + i, last, (n - i) * sizeof(float));
}

void ExpAll(const float* x, float* y, size_t n) {
  Map(x, y, n, [](auto d, auto v) HWY_ATTR { return Exp(d, v); });
}
void TanhAll(const float* x, float* y, size_t n) {
  Map(x, y, n, [](auto d, auto v) HWY_ATTR { return Tanh(d, v); });
}

}  // namespace HWY_NAMESPACE
}  // namespace plinth
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plinth {
HWY_EXPORT(ExpAll);
HWY_EXPORT(TanhAll);
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
using Values = std::vector<float>;

Values RunExp(const Values& x) {
  Values y(x.size(), NAN);
  HWY_DYNAMIC_DISPATCH(ExpAll)(x.data(), y.data(), x.size());
  return y;
}
Values RunTanh(const Values& x) {
  Values y(x.size(), NAN);
  HWY_DYNAMIC_DISPATCH(TanhAll)(x.data(), y.data(), x.size());
  return y;
}

// Distance between a float and a real, in units of the float's own spacing there.
double Ulps(float actual, double expected) {
  if (!std::isfinite(static_cast<float>(expected))) return actual == expected ? 0 : kInf;
  const auto magnitude =
      std::max(std::fabs(static_cast<float>(expected)), std::numeric_limits<float>::min());
  const double spacing = static_cast<double>(std::nextafterf(magnitude, kInf)) - magnitude;
  return std::fabs(actual - expected) / spacing;
}

// Every 509th float of both signs: all binades, mantissas without a pattern.
Values Dense() {
  Values x;
  for (uint32_t bits = 0; bits < 0x7f800000u; bits += 509 * 8) {
    x.push_back(std::bit_cast<float>(bits));
    x.push_back(std::bit_cast<float>(bits | 0x80000000u));
  }
  // The interesting stretch once more, evenly.
  for (int i = -400000; i <= 400000; ++i) x.push_back(static_cast<float>(i) * 2.7e-4f);
  return x;
}

// Runs the test on each instruction set that this machine has.
class VectorMath : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

TEST_P(VectorMath, ExpIsAccurate) {
  const Values x = Dense(), y = RunExp(x);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = std::exp(static_cast<double>(x[i]));
    double ulps = Ulps(y[i], want);
    if (want < std::numeric_limits<float>::min()) ulps = y[i] == 0 ? 0 : kInf;
    if (want > std::numeric_limits<float>::max()) ulps = y[i] >= 3.4e38f ? 0 : kInf;
    worst = std::max(worst, ulps);
    ASSERT_LE(ulps, 1.1) << "exp(" << x[i] << ") = " << y[i] << ", want " << want;
  }
  RecordProperty("worst_ulps", std::to_string(worst));
}

TEST_P(VectorMath, TanhIsAccurateAndOdd) {
  const Values x = Dense(), y = RunTanh(x);
  Values minus = x;
  for (float& value : minus) value = -value;
  const Values odd = RunTanh(minus);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = std::tanh(static_cast<double>(x[i]));
    worst = std::max(worst, Ulps(y[i], want));
    ASSERT_LE(Ulps(y[i], want), 2.1) << "tanh(" << x[i] << ") = " << y[i] << ", want " << want;
    ASSERT_LE(std::fabs(y[i]), 1.0f);
    ASSERT_EQ(std::bit_cast<uint32_t>(odd[i]), std::bit_cast<uint32_t>(-y[i])) << x[i];
  }
  RecordProperty("worst_ulps", std::to_string(worst));
}

TEST_P(VectorMath, SpecialValues) {
  const Values x = {-kInf, kInf, NAN, 0.0f, -0.0f, 88.72283f, 88.7229f, -87.33654f, -87.33655f};
  const Values e = RunExp(x), t = RunTanh(x);
  EXPECT_EQ(e[0], 0);
  EXPECT_EQ(e[1], kInf);
  EXPECT_TRUE(std::isnan(e[2]));
  EXPECT_EQ(e[3], 1);
  EXPECT_EQ(e[4], 1);
  EXPECT_TRUE(std::isfinite(e[5]));
  EXPECT_EQ(e[6], kInf);
  EXPECT_GE(e[7], std::numeric_limits<float>::min());
  EXPECT_EQ(e[8], 0);
  EXPECT_EQ(t[0], -1);
  EXPECT_EQ(t[1], 1);
  EXPECT_TRUE(std::isnan(t[2]));
  EXPECT_EQ(std::bit_cast<uint32_t>(t[4]), std::bit_cast<uint32_t>(-0.0f));
}

TEST_P(VectorMath, ResultDoesNotDependOnThePlaceInAVector) {
  Values x;
  for (int i = 0; i < 67; ++i) x.push_back(std::sin(static_cast<float>(i) * 1.7f) * 20);
  const Values e = RunExp(x), t = RunTanh(x);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(RunExp({x[i]})[0], e[i]);
    EXPECT_EQ(RunTanh({x[i]})[0], t[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, VectorMath,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& info) { return std::string(hwy::TargetName(info.param)); });

}  // namespace
}  // namespace plinth
#endif
