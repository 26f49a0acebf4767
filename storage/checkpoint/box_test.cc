#include "plinth/storage/checkpoint/box.h"

#include <cstring>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::storage {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kBad = absl::StatusCode::kInvalidArgument;

TEST(Box, WithinChecksRankSignAndEnd) {
  const std::vector<int64_t> shape = {4, 6};
  EXPECT_OK(CheckWithin({{0, 0}, {4, 6}}, shape));
  EXPECT_OK(CheckWithin({{4, 6}, {0, 0}}, shape));
  EXPECT_OK(CheckWithin({{}, {}}, {}));
  EXPECT_THAT(CheckWithin({{0}, {4}}, shape), StatusIs(kBad, HasSubstr("another rank")));
  EXPECT_THAT(CheckWithin({{0, 1}, {4, 6}}, shape), StatusIs(kBad, HasSubstr("[0+4, 1+6]")));
  EXPECT_THAT(CheckWithin({{-1, 0}, {1, 1}}, shape), StatusIs(kBad));
  EXPECT_THAT(CheckWithin({{0, 0}, {-1, 1}}, shape), StatusIs(kBad));
  EXPECT_THAT(CheckWithin({{1, 0}, {INT64_MAX, 1}}, shape), StatusIs(kBad)) << "no overflow";
}

TEST(Box, TilingNamesOverlapAndGap) {
  const std::vector<int64_t> shape = {4, 6};
  const Box left{{0, 0}, {4, 2}}, right{{0, 2}, {4, 4}}, empty{{2, 3}, {0, 3}};
  EXPECT_OK(CheckTiling(std::vector<Box>{right, empty, left}, shape));
  EXPECT_THAT(CheckTiling(std::vector<Box>{left}, shape),
              StatusIs(kBad, HasSubstr("cover 8 of 24 elements")));
  EXPECT_THAT(CheckTiling(std::vector<Box>{left, right, {{3, 5}, {1, 1}}}, shape),
              StatusIs(kBad, HasSubstr("[0+4, 2+4] and [3+1, 5+1] overlap")));
  EXPECT_OK(CheckTiling(std::vector<Box>{Box{}}, {})) << "a scalar";
  EXPECT_THAT(CheckTiling({}, {}), StatusIs(kBad, HasSubstr("0 of 1")));
  EXPECT_OK(CheckTiling({}, std::vector<int64_t>{3, 0}));
}

// Copies element by element, the slow and plain way.
int64_t CopyByElement(const Box& from, std::span<const std::byte> from_bytes, const Box& to,
                      std::span<std::byte> to_bytes, int64_t size) {
  int64_t copied = 0;
  for (int64_t i = 0; i < Elements(from.shape); ++i) {
    std::vector<int64_t> index(from.shape.size());
    for (int64_t rest = i, d = from.shape.size() - 1; d >= 0; --d) {
      index[d] = from.offset[d] + rest % from.shape[d];
      rest /= from.shape[d];
    }
    int64_t position = 0;
    bool inside = true;
    for (size_t d = 0; d < index.size(); ++d) {
      inside &= index[d] >= to.offset[d] && index[d] < to.offset[d] + to.shape[d];
      position = position * to.shape[d] + index[d] - to.offset[d];
    }
    if (!inside) continue;
    std::memcpy(&to_bytes[position * size], &from_bytes[i * size], size);
    ++copied;
  }
  return copied;
}

TEST(Box, CopySharedEqualsElementwiseCopyForRandomBoxes) {
  std::mt19937 random(7);
  const auto upto = [&](int64_t n) { return static_cast<int64_t>(random() % (n + 1)); };
  int64_t nonempty = 0;
  for (int trial = 0; trial < 5000; ++trial) {
    const int rank = static_cast<int>(upto(4));
    const int64_t size = int64_t{1} << upto(3);
    Box from, to;
    for (int d = 0; d < rank; ++d) {
      const int64_t n = upto(5);
      for (Box* box : {&from, &to}) {
        const bool whole = upto(1) == 0;  // whole dimensions make the long runs
        box->offset.push_back(whole ? 0 : upto(n));
        box->shape.push_back(whole ? n : upto(n - box->offset.back()));
      }
    }
    std::vector<std::byte> source(Elements(from.shape) * size);
    for (std::byte& b : source) b = static_cast<std::byte>(random());
    std::vector<std::byte> fast(Elements(to.shape) * size, std::byte{0xEE}), slow = fast;
    const int64_t copied = CopyShared(from, source, to, fast, size);
    ASSERT_EQ(copied, CopyByElement(from, source, to, slow, size));
    ASSERT_EQ(fast, slow) << from.ToString() << " -> " << to.ToString();
    nonempty += copied > 0;
  }
  EXPECT_GT(nonempty, 1000);
}

}  // namespace
}  // namespace plinth::storage
