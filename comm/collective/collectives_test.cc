// Every operation by every algorithm, on threads of one process, against a serial reference.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/comm/call/fingerprint.h"
#include "plinth/comm/collective/communicator.h"
#include "plinth/comm/program/algorithms/algorithms.h"
#include "plinth/comm/testing/collective_cases.h"
#include "plinth/comm/testing/ranks.h"

namespace plinth::comm {
namespace {

using ::plinth::comm::testing::BitsOfReductions;
using ::plinth::comm::testing::CheckAllCollectives;
using ::plinth::comm::testing::kReducible;
using ::plinth::comm::testing::RunThreads;
using ::testing::Each;
using ::testing::IsEmpty;

// Nothing travels in notes, so that the smallest calls run as programs too. 0 slices: as priced.
GroupOptions Pinned(const Algorithm& algorithm, int slices = 0) {
  GroupOptions options;
  options.note_payload_bytes = -1;
  for (const OpKind op :
       {OpKind::kAllReduce, OpKind::kReduceScatter, OpKind::kAllGather, OpKind::kBroadcast,
        OpKind::kReduce, OpKind::kGather, OpKind::kScatter, OpKind::kAllToAll}) {
    if (algorithm.Supports(op)) options.pins[op] = {std::string(algorithm.name), slices};
  }
  return options;
}

class Collectives : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Sizes, Collectives, ::testing::Range(1, 10));

TEST_P(Collectives, MatchTheReferenceByEveryAlgorithm) {
  constexpr int64_t kCounts[] = {0, 1, 7, 63, 64, 65, 1001};
  constexpr DType kMain[] = {DType::kF32, DType::kBf16};
  constexpr int64_t kOddCount[] = {11};
  for (const Algorithm& algorithm : Algorithms()) {
    SCOPED_TRACE(algorithm.name);
    EXPECT_THAT(RunThreads(
                    GetParam(), [&](int) { return Pinned(algorithm); },
                    [&](Communicator& comm) {
                      const std::string failure = CheckAllCollectives(comm, kCounts, kMain);
                      if (!failure.empty()) return failure;
                      return CheckAllCollectives(comm, kOddCount, kReducible);
                    }),
                Each(IsEmpty()));
  }
}

// Vectors of many slices, with and without overlap between them.
TEST_P(Collectives, MatchTheReferenceInSlices) {
  constexpr int64_t kCounts[] = {3, 301};
  constexpr DType kDTypes[] = {DType::kBf16};
  for (const Algorithm& algorithm : Algorithms()) {
    SCOPED_TRACE(algorithm.name);
    EXPECT_THAT(
        RunThreads(
            GetParam(), [&](int) { return Pinned(algorithm, 7); },
            [&](Communicator& comm) { return CheckAllCollectives(comm, kCounts, kDTypes); }),
        Each(IsEmpty()));
  }
}

TEST_P(Collectives, AreBitEqualBetweenRanksAndRuns) {
  for (const Algorithm& algorithm : Algorithms()) {
    for (const DType dtype : {DType::kF32, DType::kF16}) {
      std::vector<std::string> runs[2];
      for (std::vector<std::string>& run : runs) {
        run = RunThreads(
            GetParam(), [&](int) { return Pinned(algorithm, 5); },
            [&](Communicator& comm) { return BitsOfReductions(comm, 2501, dtype); });
      }
      EXPECT_THAT(runs[0].front(), ::testing::Not(::testing::StartsWith("ranks differ")));
      EXPECT_EQ(runs[0].front().size(), size_t{3 * 2501} * DTypeSize(dtype)) << runs[0].front();
      EXPECT_TRUE(runs[0] == runs[1]) << algorithm.name;
    }
  }
}

// The last host may hold fewer than the others.
TEST_P(Collectives, MatchTheReferenceOnSeveralHosts) {
  constexpr int64_t kCounts[] = {1, 64, 301};
  constexpr DType kDTypes[] = {DType::kF32, DType::kBf16};
  for (const Algorithm& algorithm : Algorithms()) {
    if (!algorithm.needs_hosts) continue;
    for (const int ranks_per_host : {2, 3}) {
      SCOPED_TRACE(absl::StrCat(std::string(algorithm.name), ", ranks per host: ", ranks_per_host));
      const auto options = [&](int) {
        GroupOptions group = Pinned(algorithm);
        for (int rank = 0; rank < GetParam(); ++rank) group.hosts.push_back(rank / ranks_per_host);
        return group;
      };
      EXPECT_THAT(RunThreads(GetParam(), options,
                             [&](Communicator& comm) {
                               return CheckAllCollectives(comm, kCounts, kDTypes);
                             }),
                  Each(IsEmpty()));
    }
  }
}

// Ranks 0 and 1 share a host. Rank 2, alone on its own, speaks for both: it sends its half of the
// sums and what its host owns, where three ranks alone would send 2/3 twice.
TEST(CollectivesBytes, HierarchicalFollowsTheHosts) {
  constexpr int64_t kCount = 3000;
  const auto options = [](int) {
    GroupOptions group = Pinned(*FindAlgorithm("hierarchical"));
    group.hosts = {5, 5, 6};
    return group;
  };
  const auto reports = RunThreads(3, options, [&](Communicator& comm) -> std::string {
    std::vector<float> values(kCount, 1.0f);
    ByteCounts before = comm.bytes_moved();
    if (!comm.AllReduce({values.data(), 0, DType::kF32}).ok()) return "empty call";
    const int64_t notes = comm.bytes_moved().sent - before.sent;
    before = comm.bytes_moved();
    if (!comm.AllReduce(BufferOf(std::span<float>(values))).ok()) return "call";
    return absl::StrCat(comm.bytes_moved().sent - before.sent - notes);
  });
  EXPECT_EQ(reports[2], absl::StrCat(kCount * sizeof(float)));
}

TEST(CollectivesBytes, ARingMovesWhatItMust) {
  for (int size = 2; size <= 6; ++size) {
    const int64_t count = int64_t{1000} * size;
    const auto reports = RunThreads(
        size, [](int) { return Pinned(*FindAlgorithm("ring")); },
        [&](Communicator& comm) -> std::string {
          std::vector<float> values(count, 1.0f);
          const Buffer buffer = BufferOf(std::span<float>(values));
          // The notes of both calls are equally long.
          ByteCounts before = comm.bytes_moved();
          if (!comm.AllReduce({values.data(), 0, DType::kF32}).ok()) return "empty call";
          ByteCounts after = comm.bytes_moved();
          const ByteCounts notes{after.sent - before.sent, after.received - before.received};
          before = after;
          if (!comm.AllReduce(buffer).ok()) return "call";
          after = comm.bytes_moved();
          const int64_t want = 2 * (size - 1) * buffer.bytes() / size;
          const int64_t sent = after.sent - before.sent - notes.sent;
          const int64_t received = after.received - before.received - notes.received;
          return sent == want && received == want
                     ? ""
                     : absl::StrCat("sent ", sent, ", received ", received, ", want ", want);
        });
    EXPECT_THAT(reports, Each(IsEmpty()));
  }
}

}  // namespace
}  // namespace plinth::comm
