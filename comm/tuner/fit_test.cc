// Times made from a known alpha and bandwidth must give them back.
#include "plinth/comm/tuner/fit.h"

#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "plinth/comm/tuner/cost.h"
#include "plinth/hardware/base/rng.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::HasSubstr;

// Sizes 8 .. 64 Mi, `repeats` times each, with relative noise.
std::vector<Sample> Synthetic(const LinkCost& cost, double noise, int repeats, uint64_t seed) {
  std::vector<Sample> samples;
  for (int64_t bytes = 8; bytes <= int64_t{64} << 20; bytes *= 2) {
    for (int i = 0; i < repeats; ++i) {
      const double exact = cost.alpha_us + static_cast<double>(bytes) / cost.mb_per_s;
      samples.push_back({bytes, exact * (1 + noise * RandomNormal(seed, 0, samples.size()))});
    }
  }
  return samples;
}

TEST(FitLink, ExactTimes) {
  for (const LinkCost cost : {LinkCost{1.5, 9000}, LinkCost{40, 117}, LinkCost{0, 3000}}) {
    ASSERT_OK_AND_ASSIGN(const LinkFit fit, FitLink(Synthetic(cost, 0, 1, 1)));
    EXPECT_NEAR(fit.cost.alpha_us, cost.alpha_us, 1e-6);
    EXPECT_NEAR(fit.cost.mb_per_s, cost.mb_per_s, 1e-6 * cost.mb_per_s);
    EXPECT_EQ(fit.outliers, 0);
    EXPECT_LT(fit.relative_error, 1e-6);
  }
}

TEST(FitLink, TwoSamplesAreALine) {
  ASSERT_OK_AND_ASSIGN(const LinkFit fit, FitLink(std::vector<Sample>{{0, 5}, {1000, 6}}));
  EXPECT_NEAR(fit.cost.alpha_us, 5, 1e-9);
  EXPECT_NEAR(fit.cost.mb_per_s, 1000, 1e-6);
}

TEST(FitLink, NoiseAveragesOut) {
  const LinkCost cost{12, 2500};
  for (uint64_t seed = 0; seed < 20; ++seed) {
    ASSERT_OK_AND_ASSIGN(const LinkFit fit, FitLink(Synthetic(cost, 0.05, 4, seed)));
    // 5 % noise on some 50 samples that tell about each: well below 5 %.
    EXPECT_NEAR(fit.cost.alpha_us / cost.alpha_us, 1, 0.05) << seed;
    EXPECT_NEAR(fit.cost.mb_per_s / cost.mb_per_s, 1, 0.05) << seed;
    EXPECT_NEAR(fit.relative_error, 0.67 * 0.05, 0.02) << "median of normal noise";
  }
}

// Every fifth sample was interrupted for up to a hundred times as long, or came in far too fast.
TEST(FitLink, OutliersDoNotCount) {
  const LinkCost cost{12, 2500};
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<Sample> samples = Synthetic(cost, 0.02, 5, seed);
    int planted = 0;
    for (size_t i = 0; i < samples.size(); i += 5, ++planted) {
      const double factor = 2 + 100 * RandomUniform(seed, 1, i);
      samples[i].us *= planted % 4 == 0 ? 1 / factor : factor;
    }
    ASSERT_OK_AND_ASSIGN(const LinkFit fit, FitLink(samples));
    EXPECT_NEAR(fit.cost.alpha_us / cost.alpha_us, 1, 0.05) << seed;
    EXPECT_NEAR(fit.cost.mb_per_s / cost.mb_per_s, 1, 0.05) << seed;
    EXPECT_GE(fit.outliers, planted) << seed;
    EXPECT_LE(fit.outliers, planted + 5) << seed;
  }
}

TEST(FitLink, RefusesWhatIsNoMeasurement) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto refused = [](std::vector<Sample> samples, const char* text) {
    EXPECT_THAT(FitLink(samples), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  };
  refused({}, "two different sizes");
  refused({{8, 1}}, "two different sizes");
  refused({{8, 1}, {8, 2}}, "two different sizes");
  refused({{8, 1}, {16, 0}}, "16 bytes in 0 us");
  refused({{8, 1}, {16, -2}}, "16 bytes in -2 us");
  refused({{8, 1}, {16, kNan}}, "16 bytes in nan us");
  refused({{8, kInfinity}, {16, 1}}, "8 bytes in inf us");
  refused({{-8, 1}, {16, 1}}, "-8 bytes");
  refused({{8, 10}, {1 << 20, 10}}, "do not grow");
  refused({{8, 1000}, {1 << 20, 10}}, "do not grow");
}

}  // namespace
}  // namespace plinth::comm
