#include "plinth/comm/bench/cases/pattern.h"

#include <cstddef>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/comm/bench/cases/bench_op.h"
#include "plinth/comm/reduce/reduce.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {
namespace {

constexpr DType kDTypes[] = {DType::kF32, DType::kF64,    DType::kBf16,   DType::kF16,
                             DType::kI8,  DType::kF8E4M3, DType::kF8E5M2, DType::kU8,
                             DType::kI32, DType::kU32,    DType::kI64,    DType::kU64};
constexpr ReduceOp kReduces[] = {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kProd, ReduceOp::kMin,
                                 ReduceOp::kMax};

TEST(Pattern, KnowsTheResultOfEveryReductionExactly) {
  constexpr int64_t kCount = 1000;
  for (const int ranks : {1, 2, 3, 8, 9}) {
    for (const DType dtype : kDTypes) {
      for (const ReduceOp op : kReduces) {
        if (!CanReduce(op, dtype)) continue;
        const Pattern pattern(dtype, op, ranks);
        const int64_t bytes = kCount * DTypeSize(dtype);
        std::vector<std::vector<std::byte>> inputs(ranks, std::vector<std::byte>(bytes));
        std::vector<const void*> sources;
        for (int rank = 0; rank < ranks; ++rank) {
          pattern.Fill(rank, 7, kCount, inputs[rank].data());
          EXPECT_EQ(pattern.CountWrong(rank, 7, kCount, inputs[rank].data()), 0);
          sources.push_back(inputs[rank].data());
        }
        std::vector<std::byte> out(bytes);
        pattern.Poison(kCount, out.data());
        EXPECT_EQ(pattern.CountWrong(Pattern::kReduced, 7, kCount, out.data()), kCount) << dtype;
        Reduce(op, dtype, sources, kCount, out.data());
        EXPECT_EQ(pattern.CountWrong(Pattern::kReduced, 7, kCount, out.data()), 0)
            << dtype << " " << ReduceOpName(op) << " " << ranks;
      }
    }
  }
}

TEST(Pattern, NoticesShiftsSwapsAndSingleElements) {
  constexpr int64_t kCount = 4096;
  for (const DType dtype : {DType::kU8, DType::kBf16, DType::kF32, DType::kI64}) {
    for (const ReduceOp op : {ReduceOp::kNone, ReduceOp::kSum}) {
      if (op != ReduceOp::kNone && !CanReduce(op, dtype)) continue;
      const Pattern pattern(dtype, op, 4);
      std::vector<std::byte> data(kCount * DTypeSize(dtype));
      pattern.Fill(1, 0, kCount, data.data());
      EXPECT_GT(pattern.CountWrong(0, 0, kCount, data.data()), kCount / 4);
      for (const int64_t shift : {1, 2, 16, 256, 1024, 1597}) {
        EXPECT_GT(pattern.CountWrong(1, shift, kCount, data.data()), kCount / 4) << shift;
      }
      data.back() ^= std::byte{1};
      EXPECT_LE(pattern.CountWrong(1, 0, kCount, data.data()), 1);
      pattern.Poison(1, data.data());
      EXPECT_GE(pattern.CountWrong(1, 0, kCount, data.data()), 1);
    }
  }
}

// A stand-in for the collectives: moves what each operation has to move, rank by rank.
void RunSerially(const Shape& shape, const Pattern& pattern, int rank, void* out) {
  const int64_t count = shape.count;
  auto* bytes = static_cast<std::byte*>(out);
  const int64_t share = count * DTypeSize(shape.dtype);
  switch (shape.op) {
    case BenchOp::kAllGather:
    case BenchOp::kGather:
      for (int r = 0; r < shape.ranks; ++r) pattern.Fill(r, 0, count, bytes + r * share);
      return;
    case BenchOp::kAllToAll:
      for (int r = 0; r < shape.ranks; ++r) {
        pattern.Fill(r, rank * count, count, bytes + r * share);
      }
      return;
    case BenchOp::kBroadcast:
      return pattern.Fill(shape.root, 0, count, out);
    case BenchOp::kScatter:
      return pattern.Fill(shape.root, rank * count, count, out);
    case BenchOp::kSendReceive:
      return pattern.Fill((rank + shape.ranks - 1) % shape.ranks, 0, count, out);
    default:
      return;
  }
}

TEST(Ops, ChecksTheOutputOfOperationsThatMoveData) {
  for (const BenchOp op : AllBenchOps()) {
    EXPECT_EQ(ParseBenchOp(BenchOpName(op)), op);
    if (Reduces(op) || op == BenchOp::kBarrier) continue;
    const Shape shape{op, DType::kF32, ReduceOp::kNone, HasRoot(op) ? 2 : -1, 100, 4};
    const Pattern pattern(shape.dtype, shape.reduce, shape.ranks);
    for (int rank = 0; rank < shape.ranks; ++rank) {
      const int64_t elements = OutputElements(shape, rank);
      std::vector<float> out(elements);
      pattern.Poison(elements, out.data());
      EXPECT_EQ(CountWrong(shape, pattern, rank, out.data()), elements) << BenchOpName(op);
      if (elements == 0) continue;
      RunSerially(shape, pattern, rank, out.data());
      EXPECT_EQ(CountWrong(shape, pattern, rank, out.data()), 0) << BenchOpName(op);
    }
  }
}

TEST(Ops, BusFactorsAndSizes) {
  EXPECT_EQ(BusFactor(BenchOp::kAllReduce, 2), 1);
  EXPECT_EQ(BusFactor(BenchOp::kAllReduce, 4), 1.5);
  EXPECT_EQ(BusFactor(BenchOp::kReduceScatter, 4), 0.75);
  EXPECT_EQ(BusFactor(BenchOp::kAllGather, 1), 0);
  EXPECT_EQ(BusFactor(BenchOp::kBroadcast, 8), 1);
  // The size is the larger buffer's: shares times ranks where there are shares.
  EXPECT_EQ(CountFor(BenchOp::kAllReduce, DType::kF32, 4, 64), 16);
  EXPECT_EQ(CountFor(BenchOp::kAllGather, DType::kF32, 4, 64), 4);
  EXPECT_EQ(CountFor(BenchOp::kAllToAll, DType::kF32, 4, 8), 1);
  EXPECT_EQ(ShapeBytes({BenchOp::kAllToAll, DType::kF32, ReduceOp::kNone, -1, 1, 4}), 16);
}

TEST(Ops, PlacesTheSmallerBufferAtItsShareOfTheLarger) {
  float in[12], out[12];
  const Shape gather{BenchOp::kAllGather, DType::kF32, ReduceOp::kNone, -1, 3, 4};
  EXPECT_EQ(PlaceBuffers(gather, 2, true, in, out).in, out + 6);
  EXPECT_EQ(PlaceBuffers(gather, 2, true, in, out).out, out);
  EXPECT_EQ(PlaceBuffers(gather, 2, false, in, out).in, in);
  const Shape scatter{BenchOp::kReduceScatter, DType::kF32, ReduceOp::kSum, -1, 3, 4};
  EXPECT_EQ(PlaceBuffers(scatter, 1, true, in, out).in, out);
  EXPECT_EQ(PlaceBuffers(scatter, 1, true, in, out).out, out + 3);
  // Only the root has an input.
  const Shape root{BenchOp::kScatter, DType::kF32, ReduceOp::kNone, 0, 3, 4};
  EXPECT_EQ(PlaceBuffers(root, 1, true, in, out).in, nullptr);
  EXPECT_EQ(PlaceBuffers(root, 1, true, in, out).out, out);
}

}  // namespace
}  // namespace plinth::comm
