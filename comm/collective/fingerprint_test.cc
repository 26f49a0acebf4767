#include "plinth/comm/collective/fingerprint.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/comm/collective/reduce.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

Fingerprint AllReduceOf(int64_t count, ReduceOp op = ReduceOp::kSum) {
  Fingerprint print;
  print.sequence = 17;
  print.op = OpKind::kAllReduce;
  print.reduce = op;
  print.count = count;
  return print;
}

TEST(Fingerprint, ReadsWell) {
  EXPECT_EQ(ToString(AllReduceOf(1024)), "all_reduce #17 (f32 x 1024)");
  EXPECT_EQ(ToString(AllReduceOf(0, ReduceOp::kMax)), "all_reduce #17 (f32 x 0, max)");
  Fingerprint print;
  print.sequence = 4;
  EXPECT_EQ(ToString(print), "barrier #4");
  print.op = OpKind::kBroadcast;
  print.root = 0;
  print.dtype = DType::kU8;
  EXPECT_EQ(ToString(print), "broadcast #4 (u8 x 0, root 0)");
  print.op = static_cast<OpKind>(99);
  print.dtype = static_cast<DType>(200);
  EXPECT_EQ(ToString(print), "operation 99 #4 (dtype 200 x 0, root 0)");
}

TEST(Fingerprint, NamesTheOddRanks) {
  std::vector<Fingerprint> prints(4, AllReduceOf(8));
  EXPECT_EQ(DescribeMismatch(prints), std::nullopt);
  prints[2] = AllReduceOf(7);
  EXPECT_THAT(DescribeMismatch(prints),
              Optional(std::string("rank 2 called all_reduce #17 (f32 x 7), but the other 3 ranks "
                                   "called all_reduce #17 (f32 x 8)")));
  prints[0] = AllReduceOf(8, ReduceOp::kMin);
  EXPECT_THAT(DescribeMismatch(prints),
              Optional(HasSubstr("rank 0 called all_reduce #17 (f32 x 8, min), rank 2 called")));
  prints.resize(2);
  EXPECT_THAT(DescribeMismatch(prints),
              Optional(std::string("rank 1 called all_reduce #17 (f32 x 8), but rank 0 called "
                                   "all_reduce #17 (f32 x 8, min)")));
}

}  // namespace
}  // namespace plinth::comm
