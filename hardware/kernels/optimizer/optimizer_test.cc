#include "plinth/hardware/kernels/optimizer/optimizer.h"

#include <cmath>

#include "plinth/hardware/kernels/optimizer/reference.h"
#include "plinth/hardware/testing/compare.h"
#include "plinth/hardware/testing/device_fixture.h"
#include "plinth/hardware/testing/sample.h"

namespace plinth {
namespace {

using testing::DeviceTest;
using testing::SampleFloats;

constexpr int64_t kSizes[] = {0, 1, 15, 16, 17, 31, 100, 257};
constexpr int kSteps = 10;
constexpr float kGradScale = 0.5f;

AdamWArgs Options() {
  return {.lr = 0.01f,
          .beta1 = 0.9f,
          .beta2 = 0.95f,
          .eps = 1e-8f,
          .decay = 0.1f,
          .grad_scale = kGradScale};
}

class OptimizerTest : public DeviceTest {
 protected:
  // Weights after kSteps on the loss |w - 5|^2 / 2, whose gradient is w - 5: an error in
  // one step moves all later ones.
  std::vector<float> Train(const std::vector<float>& start) {
    const Shape shape = {static_cast<int64_t>(start.size())};
    const std::vector<float> zeros(start.size(), 0);
    const Tensor w = Upload(start, shape), m = Upload(zeros, shape), v = Upload(zeros, shape);
    for (int step = 1; step <= kSteps; ++step) {
      std::vector<float> gradient = Download<float>(w);
      for (float& value : gradient) value -= 5;
      const Tensor g = Upload(gradient, shape);
      AdamWArgs args = Options();
      args.w = w.view(), args.g = g.view(), args.m = m.view(), args.v = v.view();
      args.step = step;
      AdamW(args, ctx());
    }
    return Download<float>(w);
  }

  double RunSquareSum(const std::vector<float>& values) {
    const Tensor out = NewOutput(DType::kF64, {1});
    const Tensor x = Upload(values, {static_cast<int64_t>(values.size())});
    SquareSum({.x = x.view(), .out = out.view()}, ctx());
    return Download<double>(out)[0];
  }
};

TEST_P(OptimizerTest, AdamWFollowsTheReference) {
  OnEachInstructionSet([&] {
    const AdamWArgs f32 = Options();
    const reference::AdamWOptions options = {
        .lr = f32.lr, .beta1 = f32.beta1, .beta2 = f32.beta2, .eps = f32.eps, .decay = f32.decay};
    for (int64_t n : kSizes) {
      const auto start = SampleFloats(n, 1, -2, 3);
      std::vector<double> expected;
      for (float weight : start) {
        reference::AdamWState state = {.w = weight};
        for (int step = 1; step <= kSteps; ++step) {
          reference::AdamW(state, kGradScale * (state.w - 5), options, step);
        }
        expected.push_back(state.w);
      }
      // A step rounds w once, to half a unit of its binade: 2^-24 |w| or, below 1, 2^-24 at
      // most. The update itself, lr times a ratio of about 1 that is good to 12 units, adds
      // 0.12 * 2^-24. The gradient is at least 1, so what w is off by changes later updates
      // by lr times that: a growth of 1.01 a step, 1.1 in all.
      const Tolerance tolerance = {.eps = 1.1 * kSteps * 0x1p-24, .abs = 1.12, .rel = 1};
      EXPECT_TRUE(AllClose(Train(start), expected, tolerance)) << n;
    }
  });
}

TEST_P(OptimizerTest, AdamWFirstStepHasTheSizeOfLr) {
  // m and v are corrected for their start at zero, so |step| = lr whatever the gradient.
  for (float gradient : {1e-3f, 1.0f, 1e3f}) {
    AdamWArgs args = {.lr = 0.25f, .beta1 = 0.9f, .beta2 = 0.999f};
    const Tensor w = Upload<float>({1}, {1}), g = Upload<float>({gradient}, {1});
    const Tensor m = Upload<float>({0}, {1}), v = Upload<float>({0}, {1});
    args.w = w.view(), args.g = g.view(), args.m = m.view(), args.v = v.view();
    AdamW(args, ctx());
    EXPECT_TRUE(
        AllClose(Download<float>(w), std::vector<double>{0.75}, {.eps = 0x1p-24, .rel = 8}));
  }
}

TEST_P(OptimizerTest, AWeightDependsOnItselfAlone) {
  OnEachInstructionSet([&] {
    const auto start = SampleFloats(100, 2, -2, 3);
    const auto all = Train(start);
    for (int64_t begin : {1, 3, 50, 93, 99}) {
      const std::vector<float> rest(start.begin() + begin, start.end());
      EXPECT_TRUE(AllSameBits(Train(rest), std::vector<float>(all.begin() + begin, all.end())));
    }
  });
}

TEST_P(OptimizerTest, SquareSumIsExactToDouble) {
  OnEachInstructionSet([&] {
    for (int64_t n : {0, 1, 15, 16, 17, 31, 100, 257, 16384, 16385, 50000}) {
      const auto values = SampleFloats(n, 3, -3, 3);
      long double sum = 0;
      for (float value : values) sum += static_cast<long double>(value) * value;
      // At most n / 32 roundings in a chain, and the terms are positive.
      EXPECT_TRUE(IsClose(RunSquareSum(values), static_cast<double>(sum),
                          {.eps = 0x1p-53, .rel = static_cast<double>(n) / 32 + 20}))
          << n;
    }
  });
}

TEST_P(OptimizerTest, ThreadsDoNotChangeBits) {
  const auto values = SampleFloats(100001, 4);
  ExpectSameBitsOnAnyTeam([&] { return Train(values); });
  ExpectSameBitsOnAnyTeam([&] { return std::vector<double>{RunSquareSum(values)}; });
}

INSTANTIATE_TEST_SUITE_P(Devices, OptimizerTest, ::testing::ValuesIn(testing::TestedDevices()),
                         testing::DeviceTestName);

}  // namespace
}  // namespace plinth
