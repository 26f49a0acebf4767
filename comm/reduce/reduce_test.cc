#include "plinth/comm/reduce/reduce.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/numeric.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {
namespace {

using ::testing::ElementsAre;

template <typename T>
std::vector<T> ReduceOf(ReduceOp op, DType dtype, const std::vector<std::vector<T>>& sources) {
  std::vector<const void*> pointers;
  for (const auto& source : sources) pointers.push_back(source.data());
  std::vector<T> out(sources.front().size());
  Reduce(op, dtype, pointers, static_cast<int64_t>(out.size()), out.data());
  return out;
}

TEST(Reduce, SumsFromLeftToRight) {
  // (1e8 + 1) + -1e8 is 0 in f32, any other order gives 1.
  EXPECT_THAT(ReduceOf<float>(ReduceOp::kSum, DType::kF32, {{1e8f}, {1.0f}, {-1e8f}}),
              ElementsAre(0.0f));
  EXPECT_THAT(ReduceOf<float>(ReduceOp::kSum, DType::kF32, {{1e8f}, {-1e8f}, {1.0f}}),
              ElementsAre(1.0f));
}

TEST(Reduce, AveragesAfterSumming) {
  EXPECT_THAT(ReduceOf<double>(ReduceOp::kAvg, DType::kF64, {{1, 2}, {2, 2}, {6, -4}}),
              ElementsAre(3.0, 0.0));
}

TEST(Reduce, MaxAndMinLetNanWinFromAnyRank) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (const ReduceOp op : {ReduceOp::kMax, ReduceOp::kMin}) {
    for (const auto& out : {ReduceOf<float>(op, DType::kF32, {{nan}, {inf}, {-inf}}),
                            ReduceOf<float>(op, DType::kF32, {{inf}, {nan}, {-inf}}),
                            ReduceOf<float>(op, DType::kF32, {{-inf}, {inf}, {nan}})}) {
      EXPECT_TRUE(std::isnan(out[0]));
    }
  }
  EXPECT_THAT(ReduceOf<int8_t>(ReduceOp::kMax, DType::kI8, {{-3, 7}, {-2, -128}}),
              ElementsAre(-2, 7));
  EXPECT_THAT(ReduceOf<int8_t>(ReduceOp::kMin, DType::kI8, {{-3, 7}, {-2, -128}}),
              ElementsAre(-3, -128));
}

TEST(Reduce, IntegerSumsWrap) {
  EXPECT_THAT(ReduceOf<uint8_t>(ReduceOp::kSum, DType::kU8, {{200}, {100}}), ElementsAre(44));
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(ReduceOf<int64_t>(ReduceOp::kSum, DType::kI64, {{most}, {1}}),
              ElementsAre(std::numeric_limits<int64_t>::min()));
}

TEST(Reduce, SmallFloatsAccumulateInF32) {
  // In bf16 256 + 1 is 256 again, however often; in f32 the ones add up before rounding.
  std::vector<std::vector<uint16_t>> sources(9, {F32ToBf16(1.0f)});
  sources[0] = {F32ToBf16(256.0f)};
  EXPECT_THAT(ReduceOf<uint16_t>(ReduceOp::kSum, DType::kBf16, sources),
              ElementsAre(F32ToBf16(264.0f)));
  // 2048 + 1 in f16 likewise.
  for (auto& source : sources) source = {F32ToF16(1.0f)};
  sources[0] = {F32ToF16(2048.0f)};
  EXPECT_THAT(ReduceOf<uint16_t>(ReduceOp::kSum, DType::kF16, sources),
              ElementsAre(F32ToF16(2056.0f)));
}

TEST(Reduce, EncodesBf16LikeTheCodec) {
  // a + 0 is a: every stored code passes through f32 and back, and sums of two hit the rounding.
  std::vector<uint16_t> codes(65536);
  std::vector<uint16_t> offsets(65536);
  for (int i = 0; i < 65536; ++i) {
    codes[i] = static_cast<uint16_t>(i);
    offsets[i] = static_cast<uint16_t>(i * 40503);
  }
  const auto out = ReduceOf<uint16_t>(ReduceOp::kSum, DType::kBf16, {codes, offsets});
  for (int i = 0; i < 65536; ++i) {
    const float sum = Bf16ToF32(codes[i]) + Bf16ToF32(offsets[i]);
    ASSERT_EQ(out[i], F32ToBf16(sum)) << Bf16ToF32(codes[i]) << " + " << Bf16ToF32(offsets[i]);
  }
}

TEST(Reduce, CrossesBlocksAndWorksInPlace) {
  std::vector<int32_t> a(2500);
  std::vector<int32_t> b(2500);
  for (int i = 0; i < 2500; ++i) {
    a[i] = i;
    b[i] = 7 * i;
  }
  const std::vector<const void*> sources = {a.data(), b.data()};
  Reduce(ReduceOp::kSum, DType::kI32, sources, 2500, b.data());
  for (int i = 0; i < 2500; ++i) ASSERT_EQ(b[i], 8 * i);
}

TEST(Reduce, MultipliesAndWraps) {
  EXPECT_THAT(ReduceOf<double>(ReduceOp::kProd, DType::kF64, {{2, -1}, {0.5, 3}, {4, 0}}),
              ElementsAre(4.0, 0.0));
  EXPECT_THAT(ReduceOf<uint8_t>(ReduceOp::kProd, DType::kU8, {{16, 255}, {16, 255}}),
              ElementsAre(0, 1));
  EXPECT_THAT(ReduceOf<int32_t>(ReduceOp::kProd, DType::kI32, {{1 << 30}, {4}}), ElementsAre(0));
}

TEST(Reduce, F8AccumulatesInF32AndSaturates) {
  // 16 + 1 is 16 again in e4m3 (17 rounds to even), nine ones make 25, which rounds to 24.
  std::vector<std::vector<uint8_t>> sources(10, {F32ToE4m3(1.0f)});
  sources[0] = {F32ToE4m3(16.0f)};
  EXPECT_THAT(ReduceOf<uint8_t>(ReduceOp::kSum, DType::kF8E4M3, sources),
              ElementsAre(F32ToE4m3(25.0f)));
  EXPECT_THAT(
      ReduceOf<uint8_t>(ReduceOp::kSum, DType::kF8E4M3, {{F32ToE4m3(448.0f)}, {F32ToE4m3(448.0f)}}),
      ElementsAre(F32ToE4m3(448.0f)));
  EXPECT_THAT(ReduceOf<uint8_t>(ReduceOp::kAvg, DType::kF8E5M2,
                                {{F32ToE5m2(57344.0f)}, {F32ToE5m2(57344.0f)}}),
              ElementsAre(F32ToE5m2(57344.0f)));
}

// However a sum is cut into partial sums in the same order, it has the same bits.
TEST(Reduce, PartialSumsGoOnWhereTheyEnded) {
  constexpr int64_t kCount = 2500;
  for (const DType dtype : {DType::kBf16, DType::kF16}) {
    EXPECT_EQ(AccumulatorOf(dtype), DType::kF32);
    std::vector<std::vector<uint16_t>> stored(3, std::vector<uint16_t>(kCount));
    for (int64_t i = 0; i < 3 * kCount; ++i) {
      stored[i % 3][i / 3] = static_cast<uint16_t>((i * 40503) & 0x3fff);
    }
    const auto whole = ReduceOf<uint16_t>(ReduceOp::kAvg, dtype, stored);
    std::vector<float> partial(kCount);
    const ReduceSource first[] = {{stored[0].data()}, {stored[1].data()}};
    ReducePartial(ReduceOp::kAvg, dtype, first, kCount, partial.data());
    const ReduceSource second[] = {{partial.data(), true}, {stored[2].data()}};
    std::vector<uint16_t> out(kCount);
    ReduceFinish(ReduceOp::kAvg, dtype, second, kCount, out.data(), 3);
    EXPECT_EQ(out, whole);
    // One source is only rounded and divided; in place for the partial sum itself.
    ReducePartial(ReduceOp::kAvg, dtype, second, kCount, partial.data());
    const ReduceSource alone[] = {{partial.data(), true}};
    ReduceFinish(ReduceOp::kAvg, dtype, alone, kCount, out.data(), 3);
    EXPECT_EQ(out, whole);
  }
  EXPECT_EQ(AccumulatorOf(DType::kF64), DType::kF64);
  EXPECT_EQ(AccumulatorOf(DType::kI8), DType::kI8);
}

TEST(Reduce, AsksForNoAlignment) {
  std::vector<char> bytes(3 * 8 * 100 + 3);
  std::vector<double> result(100);
  const double one = 1.5;
  for (int i = 0; i < 200; ++i) std::memcpy(bytes.data() + 3 + i * 8, &one, 8);
  const void* sources[] = {bytes.data() + 3, bytes.data() + 3 + 800};
  Reduce(ReduceOp::kSum, DType::kF64, sources, 100, result.data());
  EXPECT_THAT(result, ::testing::Each(3.0));
}

TEST(ReduceDeathTest, RefusesWhatItCannotReduce) {
  EXPECT_FALSE(CanReduce(ReduceOp::kAvg, DType::kI32));
  EXPECT_FALSE(CanReduce(ReduceOp::kSum, DType::kBool));
  EXPECT_FALSE(CanReduce(ReduceOp::kNone, DType::kF32));
  const float value = 1;
  const void* source = &value;
  float out = 0;
  EXPECT_DEATH(Reduce(ReduceOp::kSum, DType::kI16, {&source, 1}, 1, &out), "sum of i16");
}

}  // namespace
}  // namespace plinth::comm
