#include "plinth/comm/call/fingerprint.h"

#include "gtest/gtest.h"
#include "plinth/comm/reduce/reduce.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {
namespace {

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

TEST(Fingerprint, SaysOfWhichGroupAndBetweenWhom) {
  EXPECT_EQ(ToString(AllReduceOf(8), "dp"), "all_reduce #17 of group dp (f32 x 8)");
  Fingerprint print;
  print.sequence = 2;
  print.op = OpKind::kSend;
  print.count = 8;
  print.root = 1;
  EXPECT_EQ(ToString(print), "send #2 (f32 x 8, to rank 1)");
  print.op = OpKind::kReceive;
  EXPECT_EQ(ToString(print), "receive #2 (f32 x 8, from rank 1)");
  print.op = OpKind::kAllToAllV;
  print.root = -1;
  EXPECT_EQ(ToString(print, "ep"), "all_to_all_v #2 of group ep (f32)");
  print.op = OpKind::kSplit;
  EXPECT_EQ(ToString(print), "split #2");
}

}  // namespace
}  // namespace plinth::comm
