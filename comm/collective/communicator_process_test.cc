// The communicator between processes, over shm and tcp: the same results, and what the others
// say when a rank is late or dies.
#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/comm/collective/communicator.h"
#include "plinth/comm/store/store.h"
#include "plinth/comm/testing/collective_cases.h"
#include "plinth/comm/testing/ranks.h"
#include "plinth/comm/tuner/table.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {
namespace {

using ::plinth::comm::testing::CheckAllCollectives;
using ::plinth::comm::testing::CheckLargeAllReduce;
using ::plinth::comm::testing::FreePort;
using ::plinth::comm::testing::LocalOptions;
using ::plinth::comm::testing::OrderSensitiveValue;
using ::plinth::comm::testing::RankOutcome;
using ::plinth::comm::testing::RunProcesses;
using ::testing::HasSubstr;

class CommunicatorProcess : public ::testing::TestWithParam<TransportKind> {
 protected:
  // Forms a group in `size` processes and runs `body` in each.
  std::vector<RankOutcome> Run(int size, absl::Duration timeout,
                               const std::function<std::string(Communicator&)>& body) {
    const int port = FreePort();
    return RunProcesses(size, [&](int rank) -> std::string {
      const auto comm = Communicator::Create(LocalOptions(rank, size, port, GetParam(), timeout));
      return comm.ok() ? body(**comm) : comm.status().ToString();
    });
  }
  std::string Name() const { return GetParam() == TransportKind::kShm ? "shm" : "tcp"; }
};

INSTANTIATE_TEST_SUITE_P(Transports, CommunicatorProcess,
                         ::testing::Values(TransportKind::kShm, TransportKind::kTcp),
                         [](const auto& info) {
                           return info.param == TransportKind::kShm ? "Shm" : "Tcp";
                         });

TEST_P(CommunicatorProcess, AllCollectivesMatchTheReference) {
  constexpr int64_t kCounts[] = {0, 7, 300};
  // Every dtype has its turn on threads.
  constexpr DType kDTypes[] = {DType::kF32, DType::kF8E4M3};
  constexpr int64_t kLarge[] = {65535, 65537, 1 << 20};
  for (int size = 1; size <= 5; ++size) {
    const auto outcomes = Run(size, absl::Seconds(20), [&](Communicator& comm) -> std::string {
      if (size > 1 && comm.transport_name() != Name()) return "not the transport asked for";
      const std::string failure = CheckAllCollectives(comm, kCounts, kDTypes);
      return failure.empty() ? CheckLargeAllReduce(comm, kLarge) : failure;
    });
    for (const RankOutcome& outcome : outcomes) EXPECT_EQ(outcome.report, "");
  }
}

// Larger than a ring and than a piece, and no multiple of anything.
TEST_P(CommunicatorProcess, LargeBuffersOfEveryOperation) {
  constexpr int64_t kCounts[] = {70001};
  constexpr DType kDTypes[] = {DType::kF64, DType::kU8};
  const auto outcomes = Run(3, absl::Seconds(20), [&](Communicator& comm) {
    return CheckAllCollectives(comm, kCounts, kDTypes);
  });
  for (const RankOutcome& outcome : outcomes) EXPECT_EQ(outcome.report, "");
}

TEST_P(CommunicatorProcess, SumsAreBitEqualToTheSerialOrder) {
  constexpr int kSize = 5;
  constexpr int64_t kCount = 400001;
  std::vector<float> serial(kCount);
  for (int64_t i = 0; i < kCount; ++i) {
    serial[i] = OrderSensitiveValue(0, i);
    for (int rank = 1; rank < kSize; ++rank) serial[i] += OrderSensitiveValue(rank, i);
  }
  for (int run = 0; run < 2; ++run) {
    const auto outcomes = Run(kSize, absl::Seconds(20), [&](Communicator& comm) -> std::string {
      std::vector<float> values(kCount);
      for (int64_t i = 0; i < kCount; ++i) values[i] = OrderSensitiveValue(comm.rank(), i);
      const absl::Status status = comm.AllReduce(BufferOf(std::span<float>(values)));
      if (!status.ok()) return status.ToString();
      const bool equal = std::memcmp(values.data(), serial.data(), kCount * sizeof(float)) == 0;
      return equal ? "" : "bits differ";
    });
    for (const RankOutcome& outcome : outcomes) EXPECT_EQ(outcome.report, "");
  }
}

TEST_P(CommunicatorProcess, AMismatchReadsTheSameOnEveryRank) {
  const auto outcomes = Run(4, absl::Seconds(20), [](Communicator& comm) {
    std::vector<float> values(8);
    return comm.Broadcast(BufferOf(std::span<float>(values)), comm.rank() == 2 ? 1 : 0).ToString();
  });
  for (const RankOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.report, outcomes[0].report);
    EXPECT_THAT(outcome.report,
                HasSubstr("FAILED_PRECONDITION: rank 2 called broadcast #1 (f32 x 8, root 1) at "
                          "communicator_process_test.cc:"));
    EXPECT_THAT(outcome.report, HasSubstr(", but the other 3 ranks called broadcast #1 (f32 x 8, "
                                          "root 0) at communicator_process_test.cc:"));
  }
}

// Rank 1 sends to rank 2 what the others reduce; whoever comes later finds the other there.
TEST_P(CommunicatorProcess, ASendThatMeetsACallOfTheGroupIsToldAtOnce) {
  for (const int first : {1, 2}) {
    const absl::Time start = absl::Now();
    const auto outcomes = Run(3, absl::Seconds(20), [&](Communicator& comm) {
      std::vector<float> values(8);
      const Buffer buffer = BufferOf(std::span<float>(values));
      if (!comm.Barrier().ok()) return std::string("barrier");
      if (comm.rank() != first) absl::SleepFor(absl::Milliseconds(50));
      return (comm.rank() == 1 ? comm.Send(buffer, 2) : comm.AllReduce(buffer)).ToString();
    });
    for (const int rank : {1, 2}) {
      EXPECT_THAT(outcomes[rank].report,
                  ::testing::MatchesRegex(
                      "FAILED_PRECONDITION: rank 1 called send #1 .f32 x 8, to rank 2. at "
                      "communicator_process_test.cc:[0-9]+, but rank 2 called all_reduce #2 "
                      ".f32 x 8. at communicator_process_test.cc:[0-9]+"));
    }
    // It waits for rank 1, which never comes.
    EXPECT_THAT(outcomes[0].report, HasSubstr("aborted by rank "));
    EXPECT_THAT(outcomes[0].report, HasSubstr(outcomes[1].report.substr(21)));
    EXPECT_LT(absl::Now() - start, absl::Seconds(5));
  }
}

// Makes 20 calls, of which `rank` only makes the first few, then `ending`. Reports how long the
// failed call took and what it said.
std::string CallUntilEnding(Communicator& comm, int rank, void (*ending)(), size_t count = 1024) {
  std::vector<float> values(count);
  for (int call = 1; call <= 20; ++call) {
    if (comm.rank() == rank && call == 17) ending();
    const absl::Time start = absl::Now();
    const absl::Status status = comm.AllReduce(BufferOf(std::span<float>(values)));
    if (!status.ok()) {
      const int64_t ms = absl::ToInt64Milliseconds(absl::Now() - start);
      return absl::StrCat(ms, " ms, call ", call, ": ", status.ToString());
    }
  }
  return "no error";
}

TEST_P(CommunicatorProcess, AKilledRankIsNamedAtOnceByAll) {
  for (const int victim : {0, 3}) {
    const auto outcomes = Run(4, absl::Seconds(30), [&](Communicator& comm) {
      return CallUntilEnding(comm, victim, [] { raise(SIGKILL); });
    });
    EXPECT_EQ(outcomes[victim].signal, SIGKILL);
    const std::string verdict =
        absl::StrCat("rank ", victim,
                     " did not arrive at all_reduce #17 (f32 x 1024) within 30s: process is gone");
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == victim) continue;
      EXPECT_LT(std::atoi(outcomes[rank].report.c_str()), 1000) << outcomes[rank].report;
      EXPECT_THAT(outcomes[rank].report, HasSubstr(verdict)) << "rank " << rank;
    }
  }
}

TEST_P(CommunicatorProcess, ASleepingRankIsNamedAtTheDeadline) {
  for (const size_t count : {8, 1024}) {  // in notes, by a backend
    const auto outcomes = Run(4, absl::Milliseconds(500), [&](Communicator& comm) {
      const auto sleep = [] { absl::SleepFor(absl::Seconds(1)); };
      return CallUntilEnding(comm, 3, sleep, count);
    });
    for (int rank = 0; rank < 4; ++rank) {
      const std::string& report = outcomes[rank].report;
      // The sleeper finds the others' verdict when it wakes up.
      if (rank < 3) EXPECT_GE(std::atoi(report.c_str()), 400) << report;
      EXPECT_LT(std::atoi(report.c_str()), 1500) << report;
      EXPECT_THAT(report, HasSubstr("ms, call 17: "));
      EXPECT_THAT(report, HasSubstr(absl::StrCat("rank 3 did not arrive at all_reduce #17 (f32 x ",
                                                 count, ") within 500ms")));
      EXPECT_FALSE(absl::StrContains(report, "process is gone")) << report;
    }
  }
}

// Killed in the middle of a large operation, at any moment of it.
TEST_P(CommunicatorProcess, ARankKilledWhileDataMovesIsNamed) {
  const auto outcomes = Run(3, absl::Seconds(30), [](Communicator& comm) -> std::string {
    std::vector<float> values(1 << 20);
    if (comm.rank() == 1) ualarm(30000, 0);  // SIGALRM's default ends the process
    for (int call = 0; call < 100000; ++call) {
      const absl::Status status = comm.AllReduce(BufferOf(std::span<float>(values)));
      if (!status.ok()) return status.ToString();
    }
    return "no error";
  });
  EXPECT_EQ(outcomes[1].signal, SIGALRM);
  for (const int rank : {0, 2}) {
    EXPECT_THAT(outcomes[rank].report, HasSubstr("rank 1 did not"));
    EXPECT_THAT(outcomes[rank].report, HasSubstr("process is gone"));
  }
}

TEST_P(CommunicatorProcess, AMissingRankFailsTheForming) {
  const int port = FreePort();
  const auto outcomes = RunProcesses(3, [&](int rank) -> std::string {
    if (rank == 2) return "";
    const auto comm =
        Communicator::Create(LocalOptions(rank, 3, port, GetParam(), absl::Milliseconds(300)));
    return comm.status().ToString();
  });
  for (const int rank : {0, 1}) {
    EXPECT_THAT(outcomes[rank].report, HasSubstr("cannot form group world"));
    EXPECT_THAT(outcomes[rank].report, HasSubstr("rank 2 did not"));
  }
}

// Halves of a group, at work at the same time as the whole.
TEST_P(CommunicatorProcess, SplitsIntoGroupsWithConnectionsOfTheirOwn) {
  const auto outcomes = Run(4, absl::Seconds(20), [&](Communicator& comm) -> std::string {
    auto half = comm.Split(comm.rank() % 2, -comm.rank(), "half");
    if (!half.ok()) return half.status().ToString();
    if ((*half)->transport_name() != Name() || (*half)->size() != 2) return "another group";
    if ((*half)->group().world_ranks[(*half)->rank()] != comm.rank()) return "other ranks";
    for (int round = 0; round < 30; ++round) {
      std::vector<double> mine(3000 + round, comm.rank());
      std::vector<double> all(200 * round, 1);
      auto work = (*half)->AllReduceAsync(BufferOf(std::span<double>(mine)));
      const absl::Status status = comm.AllReduce(BufferOf(std::span<double>(all)));
      if (!status.ok() || !work->Wait(absl::Seconds(20)).ok()) return status.ToString();
      if (mine.back() != (comm.rank() % 2 == 0 ? 2 : 4)) return "mixed up";
      if (!all.empty() && all.back() != 4) return "mixed up with the whole";
    }
    return "";
  });
  for (const RankOutcome& outcome : outcomes) EXPECT_EQ(outcome.report, "");
}

// Two groups over one store beside a second launch, all busy at the same time.
TEST_P(CommunicatorProcess, GroupsAndLaunchesDoNotMix) {
  const int ports[] = {FreePort(), FreePort()};
  const auto outcomes = RunProcesses(4, [&](int process) -> std::string {
    const int launch = process / 2;
    CommOptions options =
        LocalOptions(process % 2, 2, ports[launch], GetParam(), absl::Seconds(20));
    auto opened = Store::Open(options, absl::Now() + options.timeout);
    if (!opened.ok()) return opened.status().ToString();
    const std::shared_ptr<Store> store = *std::move(opened);
    std::vector<std::unique_ptr<Communicator>> groups;
    for (const char* name : {"a", "b"}) {
      options.group = name;
      auto comm = Communicator::Create(options, store);
      if (!comm.ok()) return comm.status().ToString();
      groups.push_back(*std::move(comm));
    }
    for (int round = 0; round < 200; ++round) {
      std::vector<double> a(50 + round, launch * 10.0 + 1);
      std::vector<double> b(3000, launch * 10.0 + 2);
      auto work = groups[0]->AllReduceAsync(BufferOf(std::span<double>(a)));
      const absl::Status status = groups[1]->AllReduce(BufferOf(std::span<double>(b)));
      if (!status.ok() || !work->Wait(absl::Seconds(20)).ok()) return status.ToString();
      if (a.back() != launch * 20.0 + 2 || b.back() != launch * 20.0 + 4) return "mixed up";
    }
    return "";
  });
  for (const RankOutcome& outcome : outcomes) EXPECT_EQ(outcome.report, "");
}

TEST_P(CommunicatorProcess, RanksWithOtherAlgorithmsAreToldSo) {
  const int port = FreePort();
  const auto outcomes = RunProcesses(3, [&](int rank) -> std::string {
    CommOptions options = LocalOptions(rank, 3, port, GetParam(), absl::Seconds(20));
    if (rank > 0) options.algorithm = rank == 1 ? "auto" : "all_reduce=ring";
    return Communicator::Create(options).status().ToString();
  });
  for (const RankOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.report,
              "FAILED_PRECONDITION: the ranks were told to use different algorithms "
              "(PLINTH_COMM_ALGORITHM): rank 2 \"all_reduce=ring\", rank 0 \"auto\"");
  }
}

TEST_P(CommunicatorProcess, RanksWithOtherTablesAreToldSo) {
  const std::string folder = std::getenv("TEST_TMPDIR");
  const auto write = [&](const std::string& name, double alpha_us) {
    CostTable table = DefaultTable(Name());
    table.model.local.alpha_us = alpha_us;
    std::ofstream(folder + name) << "# measured\n" << FormatTable(table);
    return folder + name;
  };
  // What is in the files counts, not what they are called.
  const std::string tables[] = {write("/a", 5), write("/b", 5), write("/c", 6)};
  for (const int size : {2, 3}) {
    const int port = FreePort();
    const auto outcomes = RunProcesses(size, [&](int rank) -> std::string {
      CommOptions options = LocalOptions(rank, size, port, GetParam(), absl::Seconds(20));
      options.tuning = tables[rank];
      return Communicator::Create(options).status().ToString();
    });
    for (const RankOutcome& outcome : outcomes) {
      EXPECT_EQ(outcome.report,
                size == 2 ? "OK"
                          : absl::StrCat("FAILED_PRECONDITION: the ranks have different tables to "
                                         "choose by (PLINTH_COMM_TUNING): rank 2 \"",
                                         tables[2], "\", rank 0 \"", tables[0], "\""));
    }
  }
}

std::set<uint64_t> InodesIn(const char* directory) {
  std::set<uint64_t> inodes;
  DIR* dir = opendir(directory);
  while (const dirent* entry = dir == nullptr ? nullptr : readdir(dir)) {
    inodes.insert(entry->d_ino);
  }
  if (dir != nullptr) closedir(dir);
  return inodes;
}

// The segment has no name while it is in use, so the kernel frees it with the last process,
// however that one ends.
TEST(CommunicatorShm, TheSegmentIsNeverALeak) {
  const int port = FreePort();
  const auto outcomes = RunProcesses(2, [&](int rank) -> std::string {
    const auto comm =
        Communicator::Create(LocalOptions(rank, 2, port, TransportKind::kShm, absl::Seconds(20)));
    if (!comm.ok()) return comm.status().ToString();
    const std::set<uint64_t> named = InodesIn("/dev/shm");
    std::ifstream maps("/proc/self/maps");
    int segments = 0;
    std::string range, mode, offset, device, path;
    uint64_t inode = 0;
    for (std::string line; std::getline(maps, line);) {
      if (!absl::StrContains(line, "/dev/shm/")) continue;
      std::istringstream(line) >> range >> mode >> offset >> device >> inode >> path;
      ++segments;
      if (named.count(inode) != 0) return absl::StrCat("has a name: ", line);
    }
    return segments == 1 ? "" : absl::StrCat(segments, " segments");
  });
  for (const RankOutcome& outcome : outcomes) EXPECT_EQ(outcome.report, "");
}

}  // namespace
}  // namespace plinth::comm
