#include "plinth/hardware/kernels/norm/norm.h"

#include <algorithm>
#include <cmath>

#include "plinth/hardware/kernels/norm/reference.h"
#include "plinth/hardware/testing/compare.h"
#include "plinth/hardware/testing/device_fixture.h"
#include "plinth/hardware/testing/sample.h"

namespace plinth {
namespace {

using testing::CentralDifferences;
using testing::DeviceTest;
using testing::SampleFloats;
using testing::ToDouble;

constexpr float kEps = 1e-5f;
constexpr int64_t kWidths[] = {1, 15, 16, 17, 31, 100, 257};

enum class Kind { kRms, kLayer };

struct Forward {
  std::vector<float> y, mean, rstd;
};
struct Gradients {
  std::vector<float> dx, dgain, dbias;
};

// Inputs of one case, the same for forward and backward.
struct Inputs {
  Inputs(int64_t rows, int64_t width)
      : rows(rows),
        width(width),
        x(SampleFloats(rows * width, 1, -1, 2)),
        gain(SampleFloats(width, 2, 0.5, 1.5)),
        bias(SampleFloats(width, 3)),
        dy(SampleFloats(rows * width, 4)) {}
  int64_t rows, width;
  std::vector<float> x, gain, bias, dy;
};

class NormTest : public DeviceTest {
 protected:
  Forward RunForward(Kind kind, const Inputs& in, bool keep_statistics = true) {
    const Tensor x = Upload(in.x, {in.rows, in.width});
    const Tensor gain = Upload(in.gain, {in.width}), bias = Upload(in.bias, {in.width});
    const Tensor y = NewOutput(DType::kF32, {in.rows, in.width});
    const Tensor mean = NewOutput(DType::kF32, {in.rows}), rstd = NewOutput(DType::kF32, {in.rows});
    const TensorView kept_mean = keep_statistics ? mean.view() : TensorView{};
    const TensorView kept_rstd = keep_statistics ? rstd.view() : TensorView{};
    if (kind == Kind::kRms) {
      RmsNorm({.x_TD = x.view(),
               .gain_D = gain.view(),
               .y_TD = y.view(),
               .rstd_T = kept_rstd,
               .eps = kEps},
              ctx());
    } else {
      LayerNorm({.x_TD = x.view(),
                 .gain_D = gain.view(),
                 .bias_D = bias.view(),
                 .y_TD = y.view(),
                 .mean_T = kept_mean,
                 .rstd_T = kept_rstd,
                 .eps = kEps},
                ctx());
    }
    return {Download<float>(y), Download<float>(mean), Download<float>(rstd)};
  }

  // dgain and dbias are added to `start`.
  Gradients RunBackward(Kind kind, const Inputs& in, float start) {
    const Forward forward = RunForward(kind, in);
    const Tensor x = Upload(in.x, {in.rows, in.width});
    const Tensor gain = Upload(in.gain, {in.width});
    const Tensor mean = Upload(forward.mean, {in.rows}), rstd = Upload(forward.rstd, {in.rows});
    const Tensor dy = Upload(in.dy, {in.rows, in.width});
    const Tensor dx = NewOutput(DType::kF32, {in.rows, in.width});
    const std::vector<float> filled(static_cast<size_t>(in.width), start);
    const Tensor dgain = Upload(filled, {in.width}), dbias = Upload(filled, {in.width});
    if (kind == Kind::kRms) {
      RmsNormBackward({.x_TD = x.view(),
                       .gain_D = gain.view(),
                       .rstd_T = rstd.view(),
                       .dy_TD = dy.view(),
                       .dx_TD = dx.view(),
                       .dgain_D = dgain.view()},
                      ctx());
    } else {
      LayerNormBackward({.x_TD = x.view(),
                         .gain_D = gain.view(),
                         .mean_T = mean.view(),
                         .rstd_T = rstd.view(),
                         .dy_TD = dy.view(),
                         .dx_TD = dx.view(),
                         .dgain_D = dgain.view(),
                         .dbias_D = dbias.view()},
                        ctx());
    }
    return {Download<float>(dx), Download<float>(dgain), Download<float>(dbias)};
  }
};

reference::NormResult Expected(Kind kind, const std::vector<double>& x,
                               const std::vector<double>& gain, const std::vector<double>& bias) {
  return kind == Kind::kRms ? reference::RmsNorm(x, gain, kEps)
                            : reference::LayerNorm(x, gain, bias, kEps);
}

// A row's sums round at most width + 8 times, each by 2^-24 of a term's magnitude; `terms`
// is the largest term that a result is the sum of.
Tolerance Rounding(int64_t width, double terms) {
  return {.eps = 0x1p-24 * static_cast<double>(width + 8), .abs = terms, .rel = 1};
}

TEST_P(NormTest, ForwardEqualsTheReference) {
  OnEachInstructionSet([&] {
    for (Kind kind : {Kind::kRms, Kind::kLayer}) {
      for (int64_t width : kWidths) {
        for (int64_t rows : {0, 1, 5}) {
          const Inputs in(rows, width);
          const Forward actual = RunForward(kind, in);
          const auto expected =
              Expected(kind, ToDouble(in.x), ToDouble(in.gain), ToDouble(in.bias));
          double rstd = 1;
          for (double value : expected.rstd_T) rstd = std::max(rstd, value);
          // |x| < 2, |gain| < 1.5
          EXPECT_TRUE(AllClose(actual.y, expected.y_TD, Rounding(width, 3 * rstd))) << width;
          EXPECT_TRUE(AllClose(actual.rstd, expected.rstd_T, Rounding(width, 0))) << width;
          if (kind == Kind::kLayer) {
            EXPECT_TRUE(AllClose(actual.mean, expected.mean_T, Rounding(width, 2))) << width;
          }
          EXPECT_TRUE(AllSameBits(RunForward(kind, in, false).y, actual.y)) << width;
        }
      }
    }
  });
}

TEST_P(NormTest, LayerNormKeepsItsDigitsFarFromZero) {
  // The variance of values around 1000 is lost when computed as mean(x^2) - mean^2.
  Inputs in(1, 257);
  in.x = SampleFloats(257, 9, 1000, 1001);
  const Forward actual = RunForward(Kind::kLayer, in);
  const auto expected =
      Expected(Kind::kLayer, ToDouble(in.x), ToDouble(in.gain), ToDouble(in.bias));
  // The mean rounds by 2^-24 * 1000 in each of its partial sums (under 30 in a chain).
  EXPECT_TRUE(
      AllClose(actual.y, expected.y_TD, {.eps = 0x1p-24, .abs = 30 * 1000 * 4, .rel = 300}));
}

TEST_P(NormTest, BackwardEqualsCentralDifferences) {
  OnEachInstructionSet([&] {
    for (Kind kind : {Kind::kRms, Kind::kLayer}) {
      for (int64_t width : {1, 15, 16, 17, 31, 100}) {
        const Inputs in(3, width);
        const Gradients actual = RunBackward(kind, in, 0.5f);
        auto x = ToDouble(in.x), gain = ToDouble(in.gain), bias = ToDouble(in.bias);
        const auto loss = [&] {
          const auto y = Expected(kind, x, gain, bias).y_TD;
          double sum = 0;
          for (size_t i = 0; i < y.size(); ++i) sum += y[i] * in.dy[i];
          return sum;
        };
        double rstd = 1;
        for (double value : Expected(kind, x, gain, bias).rstd_T) rstd = std::max(rstd, value);
        const auto dx = CentralDifferences(x, loss);
        auto dgain = CentralDifferences(gain, loss), dbias = CentralDifferences(bias, loss);
        for (double& value : dgain) value += 0.5;
        for (double& value : dbias) value += kind == Kind::kRms ? 0 : 0.5;
        // |dy * gain| < 1.5, and the part along x is of the same size; the differences
        // themselves are exact to 1e-7.
        Tolerance tolerance = Rounding(width, 6 * rstd);
        tolerance.abs += 1e-7 / tolerance.eps;
        EXPECT_TRUE(AllClose(actual.dx, dx, tolerance)) << width;
        EXPECT_TRUE(AllClose(actual.dgain, dgain, tolerance)) << width;
        if (kind == Kind::kLayer) EXPECT_TRUE(AllClose(actual.dbias, dbias, tolerance)) << width;
      }
    }
  });
}

TEST_P(NormTest, ARowDependsOnItselfAlone) {
  OnEachInstructionSet([&] {
    for (Kind kind : {Kind::kRms, Kind::kLayer}) {
      const Inputs many(5, 100);
      const auto all = RunForward(kind, many).y;
      for (int64_t t = 0; t < many.rows; ++t) {
        Inputs one(1, 100);
        one.x.assign(many.x.begin() + t * 100, many.x.begin() + (t + 1) * 100);
        const std::vector<float> row(all.begin() + t * 100, all.begin() + (t + 1) * 100);
        EXPECT_TRUE(AllSameBits(RunForward(kind, one).y, row));
      }
    }
  });
}

TEST_P(NormTest, GradientMayReplaceItsInputs) {
  const Inputs in(3, 100);
  const Tensor gain = Upload(in.gain, {100}), sums = Upload(in.bias, {100});
  const Tensor mean = Upload<float>({0.1f, 0.2f, 0.3f}, {3}), rstd = Upload<float>({1, 2, 3}, {3});
  std::vector<std::vector<float>> rms, layer;
  for (int place = 0; place < 3; ++place) {  // beside, over x, over dy
    for (auto* results : {&rms, &layer}) {
      const Tensor x = Upload(in.x, {3, 100}), dy = Upload(in.dy, {3, 100});
      const Tensor dx = place == 0 ? NewOutput(DType::kF32, {3, 100}) : place == 1 ? x : dy;
      const RmsNormBackwardArgs args{.x_TD = x.view(),
                                     .gain_D = gain.view(),
                                     .rstd_T = rstd.view(),
                                     .dy_TD = dy.view(),
                                     .dx_TD = dx.view(),
                                     .dgain_D = sums.view()};
      if (results == &rms) {
        RmsNormBackward(args, ctx());
      } else {
        LayerNormBackward({.x_TD = args.x_TD,
                           .gain_D = args.gain_D,
                           .mean_T = mean.view(),
                           .rstd_T = args.rstd_T,
                           .dy_TD = args.dy_TD,
                           .dx_TD = args.dx_TD,
                           .dgain_D = args.dgain_D,
                           .dbias_D = NewOutput(DType::kF32, {100}).view()},
                          ctx());
      }
      results->push_back(Download<float>(dx));
    }
  }
  for (int place : {1, 2}) {
    EXPECT_TRUE(AllSameBits(rms[place], rms[0]));
    EXPECT_TRUE(AllSameBits(layer[place], layer[0]));
  }
}

TEST_P(NormTest, ThreadsDoNotChangeBits) {
  const Inputs in(200, 257);
  for (Kind kind : {Kind::kRms, Kind::kLayer}) {
    ExpectSameBitsOnAnyTeam([&] { return RunForward(kind, in).y; });
    ExpectSameBitsOnAnyTeam([&] { return RunBackward(kind, in, 0).dx; });
    ExpectSameBitsOnAnyTeam([&] { return RunBackward(kind, in, 0).dgain; });
    ExpectSameBitsOnAnyTeam([&] { return RunBackward(kind, in, 0).dbias; });
  }
}

TEST_P(NormTest, ShapesAreContracts) {
  const Tensor x = NewOutput(DType::kF32, {2, 4}), gain = NewOutput(DType::kF32, {5});
  EXPECT_DEATH(RmsNorm({.x_TD = x.view(), .gain_D = gain.view(), .y_TD = x.view()}, ctx()),
               "RmsNorm: dim D of gain_D");
}

INSTANTIATE_TEST_SUITE_P(Devices, NormTest, ::testing::ValuesIn(testing::TestedDevices()),
                         testing::DeviceTestName);

}  // namespace
}  // namespace plinth
