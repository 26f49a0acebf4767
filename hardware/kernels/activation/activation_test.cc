#include "plinth/hardware/kernels/activation/activation.h"

#include <cmath>
#include <limits>

#include "plinth/hardware/kernels/activation/reference.h"
#include "plinth/hardware/testing/compare.h"
#include "plinth/hardware/testing/device_fixture.h"
#include "plinth/hardware/testing/sample.h"

namespace plinth {
namespace {

using testing::DeviceTest;
using testing::SampleFloats;

constexpr int64_t kSizes[] = {0, 1, 15, 16, 17, 31, 100, 257};

// exp within 2 units, its argument within 3 units of a value up to 10 where results matter
// (an error of 30 units after exp), then three products.
constexpr Tolerance kTolerance = {.eps = 0x1p-24, .abs = 1, .rel = 40};
// Of a derivative's central difference: truncation 1e-4^2 / 6 times |f'''| < 6.
constexpr Tolerance kGradientTolerance = {.eps = 0x1p-24, .abs = 40 + 1e-8 / 0x1p-24, .rel = 40};

double Slope(double (*f)(double, double), double x, double other) {
  constexpr double kStep = 1e-4;
  return (f(x + kStep, other) - f(x - kStep, other)) / (2 * kStep);
}

struct SwiGluGradients {
  std::vector<float> dgate, dup;
};

class ActivationTest : public DeviceTest {
 protected:
  std::vector<float> RunGelu(const std::vector<float>& x) {
    const Shape shape = {static_cast<int64_t>(x.size())};
    const Tensor y = NewOutput(DType::kF32, shape);
    Gelu({.x = Upload(x, shape).view(), .y = y.view()}, ctx());
    return Download<float>(y);
  }
  std::vector<float> RunGeluBackward(const std::vector<float>& x, const std::vector<float>& dy) {
    const Shape shape = {static_cast<int64_t>(x.size())};
    const Tensor dx = NewOutput(DType::kF32, shape);
    GeluBackward({.x = Upload(x, shape).view(), .dy = Upload(dy, shape).view(), .dx = dx.view()},
                 ctx());
    return Download<float>(dx);
  }
  std::vector<float> RunSwiGlu(const std::vector<float>& gate, const std::vector<float>& up) {
    const Shape shape = {static_cast<int64_t>(gate.size())};
    const Tensor y = NewOutput(DType::kF32, shape);
    SwiGlu({.gate = Upload(gate, shape).view(), .up = Upload(up, shape).view(), .y = y.view()},
           ctx());
    return Download<float>(y);
  }
  SwiGluGradients RunSwiGluBackward(const std::vector<float>& gate, const std::vector<float>& up,
                                    const std::vector<float>& dy) {
    const Shape shape = {static_cast<int64_t>(gate.size())};
    const Tensor dgate = NewOutput(DType::kF32, shape), dup = NewOutput(DType::kF32, shape);
    SwiGluBackward({.gate = Upload(gate, shape).view(),
                    .up = Upload(up, shape).view(),
                    .dy = Upload(dy, shape).view(),
                    .dgate = dgate.view(),
                    .dup = dup.view()},
                   ctx());
    return {Download<float>(dgate), Download<float>(dup)};
  }
};

TEST_P(ActivationTest, GeluEqualsTheReference) {
  OnEachInstructionSet([&] {
    for (int64_t n : kSizes) {
      const auto x = SampleFloats(n, 1, -6, 6);
      std::vector<double> expected;
      for (float value : x) expected.push_back(reference::Gelu(value));
      EXPECT_TRUE(AllClose(RunGelu(x), expected, kTolerance)) << n;
    }
  });
}

TEST_P(ActivationTest, GeluAtTheEnds) {
  OnEachInstructionSet([&] {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    const std::vector<float> x = {-1e30f, -100, -0.0f, 0, 100, 1e30f, kInf};
    EXPECT_EQ(RunGelu(x), (std::vector<float>{0, 0, 0, 0, 100, 1e30f, kInf}));
    EXPECT_EQ(RunGeluBackward(x, std::vector<float>(7, 1)),
              (std::vector<float>{0, 0, 0.5, 0.5, 1, 1, 1}));
    EXPECT_TRUE(std::isnan(RunGelu({NAN})[0]));
  });
}

TEST_P(ActivationTest, GeluBackwardEqualsCentralDifferences) {
  OnEachInstructionSet([&] {
    for (int64_t n : kSizes) {
      const auto x = SampleFloats(n, 2, -6, 6), dy = SampleFloats(n, 3);
      std::vector<double> expected;
      for (int64_t i = 0; i < n; ++i) {
        const auto gelu = [](double value, double) { return reference::Gelu(value); };
        expected.push_back(dy[i] * Slope(gelu, x[i], 0));
      }
      EXPECT_TRUE(AllClose(RunGeluBackward(x, dy), expected, kGradientTolerance)) << n;
    }
  });
}

TEST_P(ActivationTest, GeluBackwardInPlace) {
  const auto x = SampleFloats(100, 2, -6, 6), dy = SampleFloats(100, 3);
  const Tensor both = Upload(dy, {100});
  GeluBackward({.x = Upload(x, {100}).view(), .dy = both.view(), .dx = both.view()}, ctx());
  EXPECT_TRUE(AllSameBits(Download<float>(both), RunGeluBackward(x, dy)));
}

TEST_P(ActivationTest, SwiGluEqualsTheReference) {
  OnEachInstructionSet([&] {
    for (int64_t n : kSizes) {
      const auto gate = SampleFloats(n, 4, -10, 10), up = SampleFloats(n, 5);
      std::vector<double> expected;
      for (int64_t i = 0; i < n; ++i) expected.push_back(reference::SwiGlu(gate[i], up[i]));
      EXPECT_TRUE(AllClose(RunSwiGlu(gate, up), expected, kTolerance)) << n;
    }
    EXPECT_EQ(RunSwiGlu({-1e30f, -200, 200, 1e30f}, {1, 1, 1, 1}),
              (std::vector<float>{0, 0, 200, 1e30f}));
  });
}

TEST_P(ActivationTest, SwiGluBackwardEqualsCentralDifferences) {
  OnEachInstructionSet([&] {
    for (int64_t n : kSizes) {
      const auto gate = SampleFloats(n, 6, -10, 10), up = SampleFloats(n, 7),
                 dy = SampleFloats(n, 8);
      std::vector<double> dgate, dup;
      for (int64_t i = 0; i < n; ++i) {
        dgate.push_back(dy[i] * Slope(reference::SwiGlu, gate[i], up[i]));
        dup.push_back(dy[i] * reference::SwiGlu(gate[i], 1));
      }
      const SwiGluGradients actual = RunSwiGluBackward(gate, up, dy);
      EXPECT_TRUE(AllClose(actual.dgate, dgate, kGradientTolerance)) << n;
      EXPECT_TRUE(AllClose(actual.dup, dup, kTolerance)) << n;
    }
  });
}

// Shifting a value through every lane, full vectors and tails, never changes its result.
TEST_P(ActivationTest, AnElementDependsOnItselfAlone) {
  OnEachInstructionSet([&] {
    const auto x = SampleFloats(100, 9, -6, 6), other = SampleFloats(100, 10);
    const auto gelu = RunGelu(x), slope = RunGeluBackward(x, other), swiglu = RunSwiGlu(x, other);
    for (int64_t begin = 0; begin < 100; ++begin) {
      const std::vector<float> rest(x.begin() + begin, x.end());
      const std::vector<float> rest_other(other.begin() + begin, other.end());
      const auto tail = [begin](const std::vector<float>& all) {
        return std::vector<float>(all.begin() + begin, all.end());
      };
      EXPECT_TRUE(AllSameBits(RunGelu(rest), tail(gelu)));
      EXPECT_TRUE(AllSameBits(RunGeluBackward(rest, rest_other), tail(slope)));
      EXPECT_TRUE(AllSameBits(RunSwiGlu(rest, rest_other), tail(swiglu)));
    }
  });
}

TEST_P(ActivationTest, ThreadsDoNotChangeBits) {
  const auto x = SampleFloats(100001, 11, -6, 6), other = SampleFloats(100001, 12);
  ExpectSameBitsOnAnyTeam([&] { return RunGelu(x); });
  ExpectSameBitsOnAnyTeam([&] { return RunGeluBackward(x, other); });
  ExpectSameBitsOnAnyTeam([&] { return RunSwiGlu(x, other); });
  ExpectSameBitsOnAnyTeam([&] { return RunSwiGluBackward(x, other, x).dgate; });
}

INSTANTIATE_TEST_SUITE_P(Devices, ActivationTest, ::testing::ValuesIn(testing::TestedDevices()),
                         testing::DeviceTestName);

}  // namespace
}  // namespace plinth
