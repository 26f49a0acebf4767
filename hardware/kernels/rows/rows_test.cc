#include "plinth/hardware/kernels/rows/rows.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "plinth/hardware/base/numeric.h"
#include "plinth/hardware/testing/compare.h"
#include "plinth/hardware/testing/device_fixture.h"
#include "plinth/hardware/testing/sample.h"

namespace plinth {
namespace {

using testing::DeviceTest;
using testing::SampleFloats;

class RowsTest : public DeviceTest {
 protected:
  // 0 .. n-1 in an order that is neither sorted nor symmetric.
  static std::vector<int32_t> Shuffled(int64_t n) {
    std::vector<int32_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    for (int64_t i = n - 1; i > 0; --i) std::swap(order[i], order[(i * 7919) % (i + 1)]);
    return order;
  }
};

TEST_P(RowsTest, GatherThenScatterRestores) {
  for (int64_t width : {0, 1, 15, 16, 17, 31, 100, 257}) {
    for (int64_t rows : {0, 1, 5, 100}) {
      const auto values = SampleFloats(rows * width, 1);
      const Tensor x = Upload(values, {rows, width}), index = Upload(Shuffled(rows), {rows});
      const Tensor y = NewOutput(DType::kF32, {rows, width});
      const Tensor back = NewOutput(DType::kF32, {rows, width});
      GatherRows({.x = x.view(), .index = index.view(), .y = y.view()}, ctx());
      ScatterRows({.x = y.view(), .index = index.view(), .y = back.view()}, ctx());
      EXPECT_TRUE(AllSameBits(Download<float>(back), values)) << rows << " x " << width;
      if (rows > 0) {
        const int32_t first = Shuffled(rows)[0];
        const std::vector<float> row(values.begin() + first * width,
                                     values.begin() + (first + 1) * width);
        EXPECT_TRUE(AllSameBits(Download<float>(y.Rows(0, 1)), row));
      }
    }
  }
}

TEST_P(RowsTest, GatherMayRepeatRows) {
  const Tensor x = Upload<float>({1, 2, 3, 4}, {2, 2});
  const Tensor index = Upload<int32_t>({1, 1, 0}, {3});
  const Tensor y = NewOutput(DType::kF32, {3, 2});
  GatherRows({.x = x.view(), .index = index.view(), .y = y.view()}, ctx());
  EXPECT_EQ(Download<float>(y), (std::vector<float>{3, 4, 3, 4, 1, 2}));
}

TEST_P(RowsTest, ScatterRoundsToBf16) {
  for (int64_t width : {1, 16, 33}) {
    auto values = SampleFloats(3 * width, 2);
    values[0] = std::numeric_limits<float>::quiet_NaN();
    const Tensor x = Upload(values, {3, width}), index = Upload<int32_t>({4, 0, 2}, {3});
    const Tensor y = NewOutput(DType::kBf16, {5, width});
    ScatterRows({.x = x.view(), .index = index.view(), .y = y.view()}, ctx());
    const auto stored = Download<uint16_t>(y);
    const std::vector<int64_t> rows = {4, 0, 2};
    for (int64_t i = 0; i < 3 * width; ++i) {
      EXPECT_EQ(stored[rows[i / width] * width + i % width], F32ToBf16(values[i])) << i;
    }
    // Rows that no index names stay as they were.
    EXPECT_EQ(stored[width], 0xffff);
  }
}

TEST_P(RowsTest, AddRowsLeavesOtherRows) {
  OnEachInstructionSet([&] {
    const int64_t width = 100;
    const auto values = SampleFloats(2 * width, 3), start = SampleFloats(3 * width, 4);
    const Tensor x = Upload(values, {2, width}), index = Upload<int32_t>({2, 0}, {2});
    const Tensor y = Upload(start, {3, width});
    AddRows({.x = x.view(), .index = index.view(), .y = y.view()}, ctx());
    std::vector<float> expected = start;
    for (int64_t i = 0; i < width; ++i) {
      expected[2 * width + i] += values[i];
      expected[i] += values[width + i];
    }
    EXPECT_TRUE(AllSameBits(Download<float>(y), expected));
  });
}

TEST_P(RowsTest, ThreadsDoNotChangeBits) {
  const int64_t rows = 300, width = 257;
  const auto values = SampleFloats(rows * width, 5), start = SampleFloats(rows * width, 6);
  const Tensor x = Upload(values, {rows, width}), index = Upload(Shuffled(rows), {rows});
  ExpectSameBitsOnAnyTeam([&] {
    const Tensor y = Upload(start, {rows, width});
    AddRows({.x = x.view(), .index = index.view(), .y = y.view()}, ctx());
    return Download<float>(y);
  });
}

TEST_P(RowsTest, IndexOutOfRangeIsFatal) {
  const Tensor x = NewOutput(DType::kF32, {2, 4}), y = NewOutput(DType::kF32, {1, 4});
  for (int32_t bad : {-1, 2}) {
    const Tensor index = Upload<int32_t>({bad}, {1});
    EXPECT_DEATH(
        {
          GatherRows({.x = x.view(), .index = index.view(), .y = y.view()}, ctx());
          CHECK_OK(stream().Synchronize());
        },
        "index.0. is -?[12] of 2");
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, RowsTest, ::testing::ValuesIn(testing::TestedDevices()),
                         testing::DeviceTestName);

}  // namespace
}  // namespace plinth
