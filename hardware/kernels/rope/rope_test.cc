#include "plinth/hardware/kernels/rope/rope.h"

#include <cmath>

#include "plinth/hardware/kernels/rope/reference.h"
#include "plinth/hardware/testing/compare.h"
#include "plinth/hardware/testing/device_fixture.h"
#include "plinth/hardware/testing/sample.h"

namespace plinth {
namespace {

using testing::SampleFloats;
using testing::SampleInts;

// cos, sin, two products and a sum round once each; values are at most 1 in magnitude.
constexpr Tolerance kTolerance{.eps = 5 * 0x1p-24, .abs = 2};

std::vector<float> InverseFrequencies(int64_t half) {
  std::vector<float> values;
  for (int64_t i = 0; i < half; ++i) {
    values.push_back(static_cast<float>(std::pow(10000.0, -static_cast<double>(i) / half)));
  }
  return values;
}

class RopeTest : public testing::DeviceTest {
 protected:
  // Rotates x [T, width] whose rows are H*D wide, into rows as far apart.
  std::vector<float> Run(const std::vector<float>& x, const std::vector<int32_t>& positions,
                         int64_t width, int64_t heads, int64_t head_dim, bool inverse = false) {
    const auto T = static_cast<int64_t>(positions.size());
    const Tensor x_device = Upload(x, {T, width}), p_device = Upload(positions, {T});
    const Tensor f_device = Upload(InverseFrequencies(head_dim / 2), {head_dim / 2});
    const Tensor y_device = NewOutput(DType::kF32, {T, width});
    RopeArgs args{.x = x_device.view(),
                  .positions = p_device.view(),
                  .inv_freq = f_device.view(),
                  .y = y_device.view(),
                  .heads = heads,
                  .head_dim = head_dim,
                  .inverse = inverse};
    args.x.shape = args.y.shape = Shape{T, heads * head_dim};
    Rope(args, ctx());
    return Download<float>(y_device);
  }
};

TEST_P(RopeTest, AgreesWithReference) {
  for (const int64_t T : {0, 1, 7, 20}) {
    for (const int64_t heads : {1, 3}) {
      for (const int64_t head_dim : {2, 6, 64, 80}) {
        for (const bool inverse : {false, true}) {
          const int64_t width = heads * head_dim + 3;
          auto x = SampleFloats(T * width, T + heads), expected = x;
          auto positions = SampleInts(T, 7, 0, 1 << 20);  // a long context
          auto inv_freq = InverseFrequencies(head_dim / 2);
          const auto actual = Run(x, positions, width, heads, head_dim, inverse);
          RopeArgs args{
              .x = TensorView::Contiguous(x.data(), DType::kF32, {T, width}),
              .positions = TensorView::Contiguous(positions.data(), DType::kI32, {T}),
              .inv_freq = TensorView::Contiguous(inv_freq.data(), DType::kF32, {head_dim / 2}),
              .y = TensorView::Contiguous(expected.data(), DType::kF32, {T, width}),
              .heads = heads,
              .head_dim = head_dim,
              .inverse = inverse};
          reference::Rope(args);
          for (int64_t t = 0; t < T; ++t) {
            const auto row = [&](const std::vector<float>& values) {
              const auto begin = values.begin() + t * width;
              return std::vector<float>(begin, begin + heads * head_dim);
            };
            EXPECT_TRUE(AllClose(row(actual), row(expected), kTolerance)) << "t " << t;
            EXPECT_TRUE(std::isnan(actual[(t + 1) * width - 1])) << "wrote between rows";
          }
        }
      }
    }
  }
}

TEST_P(RopeTest, InverseTurnsBack) {
  const auto x = SampleFloats(9 * 128, 1);
  const auto positions = SampleInts(9, 2, 0, 100000);
  const auto back = Run(Run(x, positions, 128, 2, 64), positions, 128, 2, 64, true);
  EXPECT_TRUE(AllClose(back, x, {.eps = 10 * 0x1p-24, .abs = 2}));
}

// What attention relies on: a product of q and k depends on the distance alone.
TEST_P(RopeTest, ProductsDependOnDistance) {
  const auto q = SampleFloats(64, 1), k = SampleFloats(64, 2);
  const auto product = [&](int32_t position) {
    const auto a = Run(q, {position + 5}, 64, 1, 64), b = Run(k, {position}, 64, 1, 64);
    double sum = 0;
    for (int i = 0; i < 64; ++i) sum += double{a[i]} * b[i];
    return sum;
  };
  for (const int32_t position : {1, 100, 1 << 20}) EXPECT_NEAR(product(position), product(0), 1e-5);
}

TEST_P(RopeTest, InPlaceAndThreadsChangeNothing) {
  const auto x = SampleFloats(40 * 64, 1);
  const auto positions = SampleInts(40, 2, 0, 4096);
  const auto expected = Run(x, positions, 64, 4, 16);
  const Tensor p = Upload(positions, {40}), f = Upload(InverseFrequencies(8), {8});
  for (const int count : {1, 3}) {
    SetThreadCount(count);
    const Tensor xy = Upload(x, {40, 64});
    Rope({.x = xy.view(),
          .positions = p.view(),
          .inv_freq = f.view(),
          .y = xy.view(),
          .heads = 4,
          .head_dim = 16},
         ctx());
    EXPECT_TRUE(AllSameBits(Download<float>(xy), expected));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, RopeTest, ::testing::ValuesIn(testing::TestedDevices()),
                         testing::DeviceTestName);

}  // namespace
}  // namespace plinth
