#include "plinth/hardware/kernels/linear/linear.h"

#include <algorithm>
#include <cmath>

#include "hwy/targets.h"
#include "plinth/hardware/base/numeric.h"
#include "plinth/hardware/kernels/linear/reference.h"
#include "plinth/hardware/testing/compare.h"
#include "plinth/hardware/testing/device_fixture.h"
#include "plinth/hardware/testing/sample.h"

namespace plinth {
namespace {

using testing::SampleFloats;
using Values = std::vector<float>;

// I fused steps and the bias round once each (twice without fused multiply-add); terms are
// at most 1 in magnitude.
Tolerance ToleranceFor(int64_t I) { return {.eps = 0x1p-24 * (2 * I + 2), .abs = I + 1.0}; }

int64_t PanelsFor(int64_t O) { return (O + kLinearPanel - 1) / kLinearPanel; }

enum class Weight { kF32, kBf16, kPackedF32, kPackedBf16 };
constexpr Weight kWeights[] = {Weight::kF32, Weight::kBf16, Weight::kPackedF32,
                               Weight::kPackedBf16};

std::vector<uint16_t> ToBf16(const Values& values) {
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(F32ToBf16(value));
  return bits;
}

// A layer and its input; rows of x and y are `gap` elements apart.
struct Problem {
  int64_t T, I, O, gap = 0;
  bool bias = true;
  Values x() const { return SampleFloats(T * (I + gap), 1); }
  Values w() const { return SampleFloats(O * I, 2); }
  Values b() const { return SampleFloats(O, 3); }
};

class LinearTest : public testing::DeviceTest {
 protected:
  Tensor MakeWeight(const Values& w, int64_t O, int64_t I, Weight kind) {
    if (kind == Weight::kBf16) return Upload(ToBf16(w), {O, I});
    const Tensor plain = Upload(w, {O, I});
    if (kind == Weight::kF32) return plain;
    const DType dtype = kind == Weight::kPackedBf16 ? DType::kBf16 : DType::kF32;
    Tensor packed = NewOutput(dtype, {PanelsFor(O), I, kLinearPanel});
    PackLinear({.w_OI = plain.view(), .packed = packed.view()}, ctx());
    return packed;
  }

  // Rows [first, first + count) of the problem's product.
  Values Run(const Problem& p, Weight kind, int64_t first, int64_t count) {
    const Tensor x = Upload(p.x(), {p.T, p.I + p.gap}), b = Upload(p.b(), {p.O});
    const Tensor w = MakeWeight(p.w(), p.O, p.I, kind);
    const Tensor y = NewOutput(DType::kF32, {count, p.O + p.gap});
    LinearArgs args{.x_TI = x.view().Rows(first, first + count),
                    .w = w.view(),
                    .y_TO = y.view(),
                    .packed = kind == Weight::kPackedF32 || kind == Weight::kPackedBf16};
    if (p.bias) args.bias_O = b.view();
    args.x_TI.shape = Shape{count, p.I}, args.y_TO.shape = Shape{count, p.O};
    Linear(args, ctx());
    Values rows = Download<float>(y), dense;
    for (int64_t t = 0; t < count; ++t) {
      const auto row = rows.begin() + t * (p.O + p.gap);
      dense.insert(dense.end(), row, row + p.O);
      for (int64_t i = 0; i < p.gap; ++i) EXPECT_TRUE(std::isnan(row[p.O + i])) << "wrote a gap";
    }
    return dense;
  }
  Values Run(const Problem& p, Weight kind) { return Run(p, kind, 0, p.T); }

  Values Reference(const Problem& p, Weight kind) {
    Values x = p.x(), w = p.w(), b = p.b(), y(p.T * p.O, NAN);
    if (kind == Weight::kBf16 || kind == Weight::kPackedBf16) {
      for (float& value : w) value = Bf16ToF32(F32ToBf16(value));
    }
    LinearArgs args{.x_TI = TensorView::Contiguous(x.data(), DType::kF32, {p.T, p.I + p.gap}),
                    .w = TensorView::Contiguous(w.data(), DType::kF32, {p.O, p.I}),
                    .y_TO = TensorView::Contiguous(y.data(), DType::kF32, {p.T, p.O})};
    if (p.bias) args.bias_O = TensorView::Contiguous(b.data(), DType::kF32, {p.O});
    args.x_TI.shape = Shape{p.T, p.I};
    reference::Linear(args);
    return y;
  }
};

TEST_P(LinearTest, AgreesWithReference) {
  SetThreadCount(1);
  for (const int64_t I : {0, 1, 15, 16, 17, 100, 257}) {
    for (const int64_t O : {1, 15, 16, 17, 100, 257}) {
      for (const int64_t T : {1, 3, 13}) {
        const Problem p{.T = T, .I = I, .O = O, .gap = T % 3, .bias = (I + O) % 2 == 0};
        for (const Weight kind : kWeights) {
          EXPECT_TRUE(AllClose(Run(p, kind), Reference(p, kind), ToleranceFor(I)))
              << "T " << T << " I " << I << " O " << O << " weight " << static_cast<int>(kind);
        }
      }
    }
  }
}

TEST_P(LinearTest, EmptySizes) {
  EXPECT_TRUE(Run({.T = 0, .I = 5, .O = 7}, Weight::kPackedF32).empty());
  EXPECT_TRUE(Run({.T = 3, .I = 5, .O = 0}, Weight::kPackedF32).empty());
}

// The contract by its letter, also where T crosses a block of rows, a piece of k (192) and
// a pass over x.
TEST_P(LinearTest, EachElementIsOneChainOfFusedSteps) {
  if ((hwy::SupportedTargets() & (HWY_AVX2 | HWY_AVX3 | HWY_NEON)) == 0) GTEST_SKIP() << "no FMA";
  const Problem p{.T = 100, .I = 400, .O = 70};
  const Values x = p.x(), w = p.w(), b = p.b();
  Values expected;
  for (int64_t t = 0; t < p.T; ++t) {
    for (int64_t o = 0; o < p.O; ++o) {
      float sum = 0;
      for (int64_t i = 0; i < p.I; ++i) sum = std::fma(x[t * p.I + i], w[o * p.I + i], sum);
      expected.push_back(sum + b[o]);
    }
  }
  EXPECT_TRUE(AllSameBits(Run(p, Weight::kPackedF32), expected));
  EXPECT_TRUE(AllSameBits(Run(p, Weight::kF32), expected));
}

TEST_P(LinearTest, ARowDoesNotDependOnItsBatchThreadsOrPacking) {
  for (const int64_t O : {17, 100, 257}) {
    const Problem p{.T = 100, .I = 257, .O = O};
    for (const bool bf16 : {false, true}) {
      const Weight packed = bf16 ? Weight::kPackedBf16 : Weight::kPackedF32;
      const Weight plain = bf16 ? Weight::kBf16 : Weight::kF32;
      SetThreadCount(1);
      const Values all = Run(p, packed);
      for (const int count : {1, 2, 3}) {
        SetThreadCount(count);
        for (const Weight kind : {packed, plain}) {
          for (const int64_t T : {1, 2, 3, 5, 8, 13, 64, 100}) {
            const int64_t first = p.T - T;
            const Values expected(all.begin() + first * O, all.end());
            EXPECT_TRUE(AllSameBits(Run(p, kind, first, T), expected))
                << "T " << T << " threads " << count << " packed " << (kind == packed);
          }
        }
      }
    }
  }
}

TEST_P(LinearTest, SeveralPassesOverALongInput) {
  const Problem p{.T = 200, .I = 4001, .O = 16};  // 64 rows a pass
  const Values all = Run(p, Weight::kPackedF32), last = Run(p, Weight::kPackedF32, 199, 1);
  EXPECT_TRUE(AllSameBits(Values(all.end() - 16, all.end()), last));
  EXPECT_TRUE(AllSameBits(Run(p, Weight::kF32), all));
  EXPECT_TRUE(AllClose(all, Reference(p, Weight::kF32), ToleranceFor(p.I)));
}

// Written out apart from PackedIndex.
TEST_P(LinearTest, PacksAsDescribed) {
  const int64_t O = 19, I = 3;
  const Values w = SampleFloats(O * I, 2);
  const auto f32 = Download<float>(MakeWeight(w, O, I, Weight::kPackedF32));
  const auto bf16 = Download<uint16_t>(MakeWeight(w, O, I, Weight::kPackedBf16));
  for (int64_t o = 0; o < 32; ++o) {
    for (int64_t i = 0; i < I; ++i) {
      const float expected = o < O ? w[o * I + i] : 0;
      const int64_t at = (o / 16 * I + i) * 16 + o % 16;
      EXPECT_EQ(f32[at], expected);
      const int64_t pair_at = o / 16 * 48 + (i == 2 ? 32 + o % 16 : 2 * (o % 16) + i);
      EXPECT_EQ(bf16[pair_at], F32ToBf16(expected));
    }
  }
}

TEST_P(LinearTest, InstructionSetsWithFusedStepsAgree) {
  const Problem p{.T = 13, .I = 100, .O = 100};
  const int64_t all = hwy::SupportedTargets();
  const Values expected = Run(p, Weight::kPackedF32);
  for (const int64_t target : {HWY_AVX2, HWY_AVX3}) {
    if ((all & target) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    for (const Weight kind : {Weight::kPackedF32, Weight::kF32}) {
      EXPECT_TRUE(AllSameBits(Run(p, kind), expected)) << hwy::TargetName(target);
    }
  }
  hwy::SetSupportedTargetsForTest(HWY_SCALAR);
  EXPECT_TRUE(AllClose(Run(p, Weight::kPackedF32), Reference(p, Weight::kF32), ToleranceFor(100)));
  const Values scalar_row = Run(p, Weight::kPackedF32, 7, 1), scalar = Run(p, Weight::kF32);
  EXPECT_TRUE(AllSameBits(scalar_row, Values(scalar.begin() + 7 * p.O, scalar.begin() + 8 * p.O)));
  hwy::SetSupportedTargetsForTest(0);
}

TEST_P(LinearTest, NamesTheWrongDimension) {
  const Tensor x = NewOutput(DType::kF32, {2, 3}), w = NewOutput(DType::kF32, {1, 4, 16});
  const Tensor y = NewOutput(DType::kF32, {2, 5});
  EXPECT_DEATH(Linear({.x_TI = x.view(), .w = w.view(), .y_TO = y.view(), .packed = true}, ctx()),
               "4 vs. 3.*in linear: dim I of w, which has shape \\[1,4,16\\]");
}

INSTANTIATE_TEST_SUITE_P(Devices, LinearTest, ::testing::ValuesIn(testing::TestedDevices()),
                         testing::DeviceTestName);

}  // namespace
}  // namespace plinth
