#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/hardware/perf/bandwidth.h"
#include "plinth/hardware/perf/compute.h"
#include "plinth/hardware/perf/kernels.h"
#include "plinth/hardware/perf/pinned.h"
#include "plinth/hardware/perf/samples.h"
#include "plinth/hardware/probe/probe.h"

namespace plinth::perf {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::HasSubstr;

TEST(Samples, MedianAndBest) {
  const Summary odd = Summarize({{3}, {1}, {2}});
  EXPECT_EQ(odd.median, 2);
  EXPECT_EQ(odd.best, 3);
  EXPECT_EQ(odd.samples, 3);
  EXPECT_EQ(Summarize({{4}, {1}, {2}, {3}}).median, 2);
  EXPECT_EQ(Summarize({{7}}).median, 7);
}

TEST(Samples, DisturbedOnesAreLeftOutUnlessMostAre) {
  const Summary few = Summarize({{1, true}, {5}, {6}, {7}});
  EXPECT_EQ(few.median, 6);
  EXPECT_EQ(few.disturbed, 1);
  const Summary half = Summarize({{1, true}, {5}});
  EXPECT_EQ(half.median, 5);
  const Summary most = Summarize({{1, true}, {2, true}, {7}});
  EXPECT_EQ(most.median, 2);
  EXPECT_EQ(most.best, 7);
  EXPECT_EQ(most.disturbed, 2);
  EXPECT_EQ(Summarize({{1, true}, {2, true}}).best, 2);
}

TEST(Pinned, EachRankRunsOnceOnItsCpu) {
  ASSERT_OK_AND_ASSIGN(const probe::CpuList cpus, ChooseCpus(0));
  std::vector<std::atomic<int>> ran(cpus.size());
  std::vector<probe::CpuList> masks(cpus.size());
  ASSERT_OK_AND_ASSIGN(const PinnedRun run, RunPinned(cpus, [&](int rank) {
                         ++ran[rank];
                         masks[rank] = probe::LiveAffinity().value();
                       }));
  EXPECT_GT(run.seconds, 0);
  for (size_t rank = 0; rank < cpus.size(); ++rank) {
    EXPECT_EQ(ran[rank].load(), 1);
    EXPECT_EQ(masks[rank], probe::CpuList{cpus[rank]});
  }
}

TEST(Pinned, ACpuThatIsNotThereIsAnErrorBeforeAnyWork) {
  std::atomic<int> ran{0};
  EXPECT_THAT(RunPinned({0, 60000}, [&](int) { ++ran; }).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("60000")));
  EXPECT_EQ(ran.load(), 0);
}

TEST(Pinned, TooManyThreadsAreRefused) {
  EXPECT_THAT(ChooseCpus(100000),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("got 100000")));
  EXPECT_THAT(ChooseCpus(-1), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(Pinned, DisturbedFromTwoPercentOn) {
  EXPECT_FALSE(IsDisturbed(0, 0.1));
  EXPECT_FALSE(IsDisturbed(1'900'000, 0.1));
  EXPECT_TRUE(IsDisturbed(2'000'000, 0.1));
}

// Aligned words for the kernels.
class Words {
 public:
  explicit Words(size_t bytes)
      : data_(static_cast<uint64_t*>(std::aligned_alloc(kBlockBytes, bytes)), std::free),
        count_(bytes / sizeof(uint64_t)) {}
  std::span<uint64_t> span() const { return {data_.get(), count_}; }

 private:
  std::unique_ptr<uint64_t, void (*)(void*)> data_;
  size_t count_;
};

// Any word that a kernel skipped, or read twice, would change the result.
TEST(Kernels, StreamReadLoadsEveryWordOnce) {
  for (const size_t bytes : {kBlockBytes, 3 * kBlockBytes}) {
    const Words words(bytes);
    uint64_t state = 1, expected = 0;
    for (uint64_t& word : words.span()) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      word = state;
      expected ^= state;
    }
    EXPECT_EQ(StreamRead(words.span()), expected);
  }
  EXPECT_EQ(StreamRead({}), 0u);
}

TEST(Kernels, StreamCopyCopiesEveryWord) {
  const Words from(2 * kBlockBytes), to(2 * kBlockBytes);
  for (size_t i = 0; i < from.span().size(); ++i) {
    from.span()[i] = i + 1;
    to.span()[i] = 0;
  }
  StreamCopy(from.span(), to.span());
  for (size_t i = 0; i < to.span().size(); ++i) ASSERT_EQ(to.span()[i], i + 1);
}

TEST(Kernels, FmaLoopComputesWhatItSays) {
  // x -> 0.75 x + 0.25 tends to 1; the sum over all lanes of all chains counts them, and a
  // multiply-add is two operations.
  const auto lanes = static_cast<float>(FmaFlopsPerIteration() / 2);
  EXPECT_NEAR(FmaLoop(200), lanes, lanes * 1e-5f);
  EXPECT_GT(FmaLoop(0), lanes);
  EXPECT_STRNE(InstructionSet(), "");
}

TEST(Bandwidth, SmallBufferGivesPlausibleFigures) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MemoryProbe> probe,
                       MemoryProbe::Create({.threads = 1, .bytes = 1000003, .repetitions = 3}));
  for (const bool copy : {false, true}) {
    ASSERT_OK_AND_ASSIGN(const BandwidthResult result, copy ? probe->Copy() : probe->Read());
    EXPECT_EQ(result.threads, 1);
    EXPECT_EQ(result.samples, 3);
    EXPECT_EQ(result.bytes, 1000003 / (2 * kBlockBytes) * (2 * kBlockBytes));
    EXPECT_GT(result.median_gbps, 0.01);
    EXPECT_LT(result.best_gbps, 10000);
    EXPECT_GE(result.best_gbps, result.median_gbps);
  }
}

TEST(Bandwidth, OptionsOutOfRangeAreErrors) {
  EXPECT_THAT(MeasureReadBandwidth({.repetitions = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("repetitions")));
  EXPECT_THAT(MeasureReadBandwidth({.bytes = 100}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("got 100")));
  EXPECT_THAT(MeasureReadBandwidth({.bytes = uint64_t{1} << 60}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("available")));
  EXPECT_THAT(MeasureCopyBandwidth({.threads = 100000}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("threads")));
}

TEST(Compute, GemmIsCheckedAndTimed) {
  for (const int64_t size : {1, 17, 128}) {
    ASSERT_OK_AND_ASSIGN(const ComputeResult result,
                         MeasureGemmPeak({.threads = 1, .repetitions = 3, .gemm_size = size}));
    EXPECT_GT(result.median_gflops, 0) << size;
    EXPECT_GE(result.best_gflops, result.median_gflops) << size;
    EXPECT_EQ(result.samples, 3);
  }
}

// The measurement must not leave its affinity behind on the caller's thread.
TEST(Compute, LeavesTheCallerAsItWas) {
  ASSERT_OK_AND_ASSIGN(const probe::CpuList before, probe::LiveAffinity());
  ASSERT_OK(MeasureGemmPeak({.threads = 1, .repetitions = 1, .gemm_size = 32}));
  ASSERT_OK(MeasureFmaPeak({.threads = 1, .repetitions = 1}));
  ASSERT_OK_AND_ASSIGN(const probe::CpuList after, probe::LiveAffinity());
  EXPECT_EQ(before, after);
}

TEST(Compute, OptionsOutOfRangeAreErrors) {
  EXPECT_THAT(MeasureGemmPeak({.gemm_size = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("gemm_size")));
  EXPECT_THAT(MeasureGemmPeak({.gemm_size = 1 << 20}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(MeasureFmaPeak({.repetitions = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("repetitions")));
}

}  // namespace
}  // namespace plinth::perf
