#include "plinth/hardware/kernels/elementwise/elementwise.h"

#include "plinth/hardware/testing/compare.h"
#include "plinth/hardware/testing/device_fixture.h"
#include "plinth/hardware/testing/sample.h"

namespace plinth {
namespace {

using testing::DeviceTest;
using testing::SampleFloats;

constexpr int64_t kSizes[] = {0, 1, 15, 16, 17, 31, 100, 257};

class ElementwiseTest : public DeviceTest {
 protected:
  // What ColumnSum adds to `y`.
  std::vector<float> Columns(const std::vector<float>& x, const std::vector<float>& y) {
    const int64_t columns = static_cast<int64_t>(y.size());
    const int64_t rows = static_cast<int64_t>(x.size()) / columns;
    const Tensor sums = Upload(y, {columns});
    ColumnSum({.x_TO = Upload(x, {rows, columns}).view(), .y_O = sums.view()}, ctx());
    return Download<float>(sums);
  }
};

TEST_P(ElementwiseTest, AddIsExactToOneRounding) {
  OnEachInstructionSet([&] {
    for (int64_t n : kSizes) {
      const auto a = SampleFloats(n, 1), b = SampleFloats(n, 2);
      std::vector<float> sum(n);
      for (int64_t i = 0; i < n; ++i) sum[i] = a[i] + b[i];
      const Tensor x = Upload(a, {n}), z = Upload(b, {n}), y = NewOutput(DType::kF32, {n});
      Add({.a = x.view(), .b = z.view(), .y = y.view()}, ctx());
      EXPECT_TRUE(AllSameBits(Download<float>(y), sum)) << n;
      Add({.a = x.view(), .b = z.view(), .y = x.view()}, ctx());
      EXPECT_TRUE(AllSameBits(Download<float>(x), sum)) << "in place, " << n;
    }
  });
}

TEST_P(ElementwiseTest, ScaleIsExactToOneRounding) {
  OnEachInstructionSet([&] {
    for (int64_t n : kSizes) {
      const auto values = SampleFloats(n, 3);
      std::vector<float> scaled(n);
      for (int64_t i = 0; i < n; ++i) scaled[i] = values[i] * 0.3f;
      const Tensor x = Upload(values, {n});
      Scale({.x = x.view(), .factor = 0.3f}, ctx());
      EXPECT_TRUE(AllSameBits(Download<float>(x), scaled)) << n;
    }
  });
}

TEST_P(ElementwiseTest, ColumnSumAddsRowsInOrder) {
  OnEachInstructionSet([&] {
    for (int64_t rows : {0, 1, 7}) {
      for (int64_t columns : {1, 15, 16, 17, 31, 100, 257}) {
        const auto x = SampleFloats(rows * columns, 4);
        std::vector<float> sums = SampleFloats(columns, 5);
        const std::vector<float> start = sums;
        for (int64_t i = 0; i < rows * columns; ++i) sums[i % columns] += x[i];
        EXPECT_TRUE(AllSameBits(Columns(x, start), sums)) << rows << " x " << columns;
      }
    }
  });
}

TEST_P(ElementwiseTest, ColumnSumReadsStridedRows) {
  const Tensor wide = Upload<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  TensorView left = wide.view();
  left.shape = {2, 2};
  const Tensor sums = Upload<float>({0, 0}, {2});
  ColumnSum({.x_TO = left, .y_O = sums.view()}, ctx());
  EXPECT_EQ(Download<float>(sums), (std::vector<float>{5, 7}));
}

TEST_P(ElementwiseTest, ThreadsDoNotChangeBits) {
  const auto x = SampleFloats(1000 * 257, 6);
  const auto y = SampleFloats(257, 7);
  ExpectSameBitsOnAnyTeam([&] { return Columns(x, y); });
}

TEST_P(ElementwiseTest, ShapesAreContracts) {
  const Tensor x = NewOutput(DType::kF32, {4}), y = NewOutput(DType::kF32, {5});
  EXPECT_DEATH(Add({.a = x.view(), .b = y.view(), .y = x.view()}, ctx()), "Add: dim N of b");
}

INSTANTIATE_TEST_SUITE_P(Devices, ElementwiseTest, ::testing::ValuesIn(testing::TestedDevices()),
                         testing::DeviceTestName);

}  // namespace
}  // namespace plinth
