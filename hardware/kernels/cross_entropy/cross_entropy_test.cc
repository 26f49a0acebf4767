#include "plinth/hardware/kernels/cross_entropy/cross_entropy.h"

#include <cmath>
#include <limits>

#include "plinth/hardware/kernels/cross_entropy/reference.h"
#include "plinth/hardware/testing/compare.h"
#include "plinth/hardware/testing/device_fixture.h"
#include "plinth/hardware/testing/sample.h"

namespace plinth {
namespace {

using testing::CentralDifferences;
using testing::DeviceTest;
using testing::SampleFloats;
using testing::SampleInts;
using testing::ToDouble;

struct Result {
  std::vector<float> loss;
  std::vector<float> logits;  // after the call: the gradient where it was asked for
};

class CrossEntropyTest : public DeviceTest {
 protected:
  Result Run(const std::vector<float>& logits, const std::vector<int32_t>& targets, bool gradient,
             float weight = 1) {
    const int64_t rows = static_cast<int64_t>(targets.size());
    const int64_t classes = rows == 0 ? 5 : static_cast<int64_t>(logits.size()) / rows;
    const Tensor x = Upload(logits, {rows, classes});
    const Tensor loss = NewOutput(DType::kF32, {rows});
    CrossEntropy({.logits_TV = x.view(),
                  .targets_T = Upload(targets, {rows}).view(),
                  .loss_T = loss.view(),
                  .gradient = gradient,
                  .weight = weight},
                 ctx());
    return {Download<float>(loss), Download<float>(x)};
  }
};

// Summing V exponentials, each within 2 units and at most 1, in chains rounds the sum
// V + 2 times at most; its logarithm turns that into an absolute error. max - target adds
// one rounding of values up to `largest`.
Tolerance LossTolerance(int64_t classes, double largest) {
  return {.eps = 0x1p-24, .abs = static_cast<double>(classes + 4) + 4 * largest, .rel = 4};
}

TEST_P(CrossEntropyTest, LossEqualsTheReference) {
  OnEachInstructionSet([&] {
    for (int64_t classes : {1, 15, 16, 17, 31, 100, 257}) {
      for (int64_t rows : {0, 1, 3}) {
        const auto logits = SampleFloats(rows * classes, 1, -20, 20);
        const auto targets = SampleInts(rows, 2, 0, static_cast<int32_t>(classes));
        const Result actual = Run(logits, targets, false);
        EXPECT_TRUE(AllClose(actual.loss, reference::CrossEntropy(ToDouble(logits), targets),
                             LossTolerance(classes, 20)))
            << rows << " x " << classes;
        EXPECT_TRUE(AllSameBits(actual.logits, logits)) << "without a gradient logits stay";
        EXPECT_TRUE(AllSameBits(Run(logits, targets, true).loss, actual.loss));
      }
    }
  });
}

TEST_P(CrossEntropyTest, GradientEqualsCentralDifferences) {
  OnEachInstructionSet([&] {
    constexpr float kWeight = 0.25f;
    for (int64_t classes : {1, 15, 16, 17, 31, 100}) {
      const auto logits = SampleFloats(3 * classes, 3, -3, 3);
      auto targets = SampleInts(3, 4, 0, static_cast<int32_t>(classes));
      targets[1] = -1;
      auto x = ToDouble(logits);
      const auto expected = CentralDifferences(x, [&] {
        double sum = 0;
        for (double loss : reference::CrossEntropy(x, targets)) sum += kWeight * loss;
        return sum;
      });
      // Probabilities within classes + 8 units (the sum's roundings), differences to 1e-8.
      const Tolerance tolerance = {
          .eps = 0x1p-24, .abs = 1 + 1e-8 / 0x1p-24, .rel = static_cast<double>(classes + 8)};
      EXPECT_TRUE(AllClose(Run(logits, targets, true, kWeight).logits, expected, tolerance))
          << classes;
    }
  });
}

TEST_P(CrossEntropyTest, MaskedRowsCostNothing) {
  const auto logits = SampleFloats(2 * 100, 5);
  const Result result = Run(logits, {-1, 7}, true);
  EXPECT_EQ(result.loss[0], 0);
  for (int64_t v = 0; v < 100; ++v) EXPECT_EQ(result.logits[v], 0);
  EXPECT_GT(result.loss[1], 0);
}

TEST_P(CrossEntropyTest, HugeAndInfiniteLogits) {
  OnEachInstructionSet([&] {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    // Class 1 is impossible; classes 0 and 2 are equally likely though their exp overflows.
    const Result result = Run({3e38f, -kInf, 3e38f}, {0}, true);
    EXPECT_NEAR(result.loss[0], std::log(2.0), 1e-7);
    EXPECT_EQ(result.logits, (std::vector<float>{-0.5, 0, 0.5}));
    EXPECT_EQ(Run({0, -kInf}, {1}, false).loss[0], kInf);
  });
}

TEST_P(CrossEntropyTest, ARowDependsOnItselfAlone) {
  OnEachInstructionSet([&] {
    const auto logits = SampleFloats(3 * 257, 6, -5, 5);
    const Result all = Run(logits, {3, 200, 256}, true);
    const std::vector<float> last(logits.begin() + 2 * 257, logits.end());
    const Result one = Run(last, {256}, true);
    EXPECT_EQ(one.loss[0], all.loss[2]);
    EXPECT_TRUE(AllSameBits(one.logits,
                            std::vector<float>(all.logits.begin() + 2 * 257, all.logits.end())));
  });
}

TEST_P(CrossEntropyTest, ThreadsDoNotChangeBits) {
  const auto logits = SampleFloats(31 * 5003, 7, -5, 5);
  const auto targets = SampleInts(31, 8, -1, 5003);
  ExpectSameBitsOnAnyTeam([&] { return Run(logits, targets, true).loss; });
  ExpectSameBitsOnAnyTeam([&] { return Run(logits, targets, true).logits; });
}

TEST_P(CrossEntropyTest, TargetOutOfRangeIsFatal) {
  for (int32_t bad : {-2, 3}) {
    EXPECT_DEATH(Run({1, 2, 3}, {bad}, false), "targets.0. is -?[23] of 3 classes");
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, CrossEntropyTest, ::testing::ValuesIn(testing::TestedDevices()),
                         testing::DeviceTestName);

}  // namespace
}  // namespace plinth
