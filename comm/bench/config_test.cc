#include "plinth/comm/bench/config.h"

#include "plinth/comm/bench/cases/bench_op.h"
#include "plinth/comm/reduce/reduce.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(BenchConfig, ReadsListsAndSizes) {
  BenchFlags flags;
  flags.op = "all_gather,reduce";
  flags.dtype = "bf16,i8";
  flags.redop = "all";
  flags.transport = "mem,shm";
  flags.min_bytes = 10;
  flags.max_bytes = 1000;
  flags.factor = 10;
  ASSERT_OK_AND_ASSIGN(const BenchConfig config, ParseBenchConfig(flags));
  EXPECT_THAT(config.ops, ElementsAre(BenchOp::kAllGather, BenchOp::kReduce));
  EXPECT_THAT(config.dtypes, ElementsAre(DType::kBf16, DType::kI8));
  EXPECT_THAT(config.transports, ElementsAre("shm", "mem"));
  EXPECT_THAT(config.sizes, ElementsAre(10, 100, 1000));
  // Every size once for each type; nothing to reduce with.
  EXPECT_THAT(ShapesOf(config, BenchOp::kAllGather, 2), SizeIs(2 * 3));
  // Five reductions of bf16, four of i8, which has no average.
  EXPECT_THAT(ShapesOf(config, BenchOp::kReduce, 2), SizeIs((5 + 4) * 3));
  EXPECT_THAT(ShapesOf(config, BenchOp::kBarrier, 2), SizeIs(1));
}

TEST(BenchConfig, TakesEveryRootAndNoShareTwice) {
  BenchFlags flags;
  flags.root = "all";
  flags.min_bytes = 1;
  flags.max_bytes = 64;
  flags.factor = 2;
  ASSERT_OK_AND_ASSIGN(const BenchConfig config, ParseBenchConfig(flags));
  EXPECT_THAT(ShapesOf(config, BenchOp::kBroadcast, 3), SizeIs(3 * 5));  // 4, 8, ... 64 bytes
  EXPECT_THAT(ShapesOf(config, BenchOp::kAllToAll, 8), SizeIs(2));       // 32 and 64 bytes
}

TEST(BenchConfig, NamesTheFlagAndWhatItMayHold) {
  const auto wrong = [](auto BenchFlags::*field, auto value, const char* text) {
    BenchFlags flags;
    flags.*field = value;
    EXPECT_THAT(ParseBenchConfig(flags).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  };
  wrong(&BenchFlags::op, "all_reduce,gether", "--op: \"gether\", expected all_reduce, reduce_sc");
  wrong(&BenchFlags::dtype, "", "--dtype: \"\", expected f32, f64");
  wrong(&BenchFlags::redop, "mean", "--redop: \"mean\", expected sum, avg");
  wrong(&BenchFlags::root, "-1", "--root: \"-1\", expected ranks from 0 or all");
  wrong(&BenchFlags::transport, "udp", "--transport: \"udp\", expected shm, tcp, mem");
  wrong(&BenchFlags::buffers, "pinned", "--buffers: \"pinned\", expected private or registered");
  wrong(&BenchFlags::vs, "ucx", "--vs: \"ucx\", expected mpi or gloo");
  wrong(&BenchFlags::ranks, 0, "--ranks: \"0\", expected 1 to 64");
  wrong(&BenchFlags::min_bytes, -1, "--min_bytes: \"-1\", expected 1 to");
  wrong(&BenchFlags::ranks, 65, "--ranks: \"65\", expected 1 to 64");
  wrong(&BenchFlags::min_bytes, 0, "--min_bytes: \"0\", expected 1 to");
  wrong(&BenchFlags::max_bytes, 4, "--max_bytes: \"4\", expected 8 to");
  wrong(&BenchFlags::factor, 1, "--factor: \"1\", expected 2 to");
  wrong(&BenchFlags::batches, 0, "--batches: \"0\", expected 1 to");
  wrong(&BenchFlags::batch_ms, -1, "--batch_ms: \"-1\", expected 0 to");
}

TEST(BenchConfig, ComparesOneTransportAtATime) {
  BenchFlags flags;
  flags.vs = "gloo";
  flags.transport = "tcp";
  ASSERT_OK_AND_ASSIGN(const BenchConfig config, ParseBenchConfig(flags));
  EXPECT_EQ(config.versus, Versus::kGloo);
  for (const char* transport : {"shm,tcp", "all", "mem", "nccl"}) {
    flags.transport = transport;
    EXPECT_THAT(ParseBenchConfig(flags).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("beside --vs=gloo")));
  }
}

TEST(BenchConfig, AllTransportsAreThoseThatNeedNothingElse) {
  BenchFlags flags;
  flags.transport = "all";
  ASSERT_OK_AND_ASSIGN(BenchConfig config, ParseBenchConfig(flags));
  EXPECT_THAT(config.transports, ElementsAre("shm", "tcp", "mem"));
  flags.transport = "mpi,nccl";
  ASSERT_OK_AND_ASSIGN(config, ParseBenchConfig(flags));
  EXPECT_EQ(TransportNamed(config.transports[0]), TransportKind::kMpi);
  EXPECT_EQ(TransportNamed(config.transports[1]), TransportKind::kNccl);
}

}  // namespace
}  // namespace plinth::comm
