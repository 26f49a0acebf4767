// The mpi transport in real jobs of mpirun where it is installed; PLINTH_REQUIRE_MPI=1 makes its
// absence an error.
#include "plinth/comm/transport/mpi/connect.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/comm/testing/ranks.h"
#include "plinth/comm/transport/mpi/library.h"
#include "plinth/comm/transport/mpi/places.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::plinth::comm::testing::FreePort;
using ::plinth::comm::testing::LocalOptions;
using ::plinth::comm::testing::RunProcesses;
using ::plinth::testing::IsOk;
using ::plinth::testing::StatusIs;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;

TEST(MpiPlaces, RefusesAWorldThatIsNotTheGroup) {
  CommOptions options;
  options.size = 2;
  const auto check = [&](std::vector<MpiPlace> places) { return CheckMpiPlaces(options, places); };
  EXPECT_THAT(check({{0, 2}, {1, 2}}), IsOk());
  EXPECT_THAT(check({{1, 2}, {0, 2}}), IsOk());
  EXPECT_THAT(check({{0, 1}, {0, 1}}),
              StatusIs(kPrecondition,
                       "mpi: the world of MPI has size 1 for rank 0, group world has size 2: start "
                       "all ranks, and no others, with one mpirun -n 2"));
  EXPECT_THAT(check({{0, 3}, {1, 3}}), StatusIs(kPrecondition, HasSubstr("has size 3 for rank 0")));
  EXPECT_THAT(check({{1, 2}, {1, 2}}),
              StatusIs(kPrecondition, HasSubstr("ranks 0 and 1 are both rank 1 of MPI")));
  // A group within the world.
  options.group = "dp";
  EXPECT_THAT(check({{5, 8}, {2, 8}}), IsOk());
  EXPECT_THAT(check({{5, 8}, {2, 9}}),
              StatusIs(kPrecondition, HasSubstr("size 9 for rank 1 and 8 for rank 0")));
  EXPECT_THAT(check({{0, 1}, {0, 1}}), StatusIs(kPrecondition, HasSubstr("group dp has size 2")));
}

TEST(MpiPlaces, ReadsWhatItWrites) {
  ASSERT_OK_AND_ASSIGN(const MpiPlace place, DecodeMpiPlace(EncodeMpiPlace({3, 8})));
  EXPECT_EQ(place.rank, 3);
  EXPECT_EQ(place.size, 8);
  for (const char* text : {"", "1", "x y", "2 2", "-1 3"}) {
    EXPECT_THAT(DecodeMpiPlace(text), StatusIs(absl::StatusCode::kInternal)) << text;
  }
}

TEST(MpiLibrary, SaysWhatToInstall) {
  EXPECT_THAT(LoadMpi("libno-such-mpi.so.40"),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("install OpenMPI, Debian's packages openmpi-bin")));
  EXPECT_THAT(LoadMpi("libc.so.6"), StatusIs(absl::StatusCode::kUnavailable,
                                             HasSubstr("libc.so.6 is not OpenMPI 3 or later")));
}

TEST(MpiConnect, ARankWithoutTheLibraryFailsAll) {
  const int port = FreePort();
  const auto outcomes = RunProcesses(2, [&](int rank) -> std::string {
    const CommOptions options = LocalOptions(rank, 2, port, TransportKind::kMpi, absl::Seconds(5));
    const absl::Time deadline = absl::Now() + options.timeout;
    const auto store = Store::Open(options, deadline);
    if (!store.ok()) return store.status().ToString();
    const auto made = ConnectMpi(options, **store, deadline, "libno-such-mpi.so.40");
    // The store ends with rank 0: let rank 1 read first.
    if (rank == 0) (*store)->Wait("read", deadline).IgnoreError();
    if (rank == 1) (*store)->Set("read", "", deadline).IgnoreError();
    return made.status().ToString();
  });
  for (const auto& outcome : outcomes) {
    EXPECT_THAT(outcome.report, HasSubstr("UNAVAILABLE"));
    EXPECT_THAT(outcome.report, HasSubstr("openmpi-bin"));
  }
}

class MpiRun : public ::testing::Test {
 protected:
  void SetUp() override {
    if (access("/usr/bin/mpirun", X_OK) == 0) return;
    const char* required = std::getenv("PLINTH_REQUIRE_MPI");
    ASSERT_TRUE(required == nullptr || required[0] != '1') << "no mpirun";
    GTEST_SKIP() << "no mpirun";
  }

  // What all of a job's ranks and mpirun printed.
  static std::string Run(int size, int port, const std::string& mode,
                         const std::string& variables = "") {
    // Bounded: how a job ends after an error is up to mpirun.
    const std::string command = absl::StrCat(
        variables, " timeout -k 1 15 /usr/bin/mpirun --allow-run-as-root --oversubscribe -n ", size,
        " comm/transport/mpi/rank_of_test ", port, " ", mode, " 2>&1");
    FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return "cannot run";
    std::string output;
    char chunk[4096];
    while (const size_t got = fread(chunk, 1, sizeof(chunk), pipe)) output.append(chunk, got);
    pclose(pipe);
    return output;
  }
};

TEST_F(MpiRun, AllCollectivesMatchTheReference) {
  const std::string output = Run(4, FreePort(), "collectives");
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_THAT(output, HasSubstr(absl::StrCat("rank ", rank, ": ok\n")));
  }
}

TEST_F(MpiRun, ALateRankIsNamed) {
  const std::string output = Run(3, FreePort(), "late");
  for (const int rank : {0, 1}) EXPECT_THAT(output, HasSubstr(absl::StrCat("rank ", rank, ": ")));
  EXPECT_THAT(output,
              HasSubstr("rank 2 did not arrive at all_reduce #3 (f32 x 1000) within 500ms"));
  EXPECT_THAT(output, Not(HasSubstr("no error")));
}

TEST_F(MpiRun, ARankThatLeavesIsNamed) {
  const std::string output = Run(3, FreePort(), "left");
  for (const int rank : {0, 1}) EXPECT_THAT(output, HasSubstr(absl::StrCat("rank ", rank, ": ")));
  EXPECT_THAT(output, HasSubstr("rank 2 did not arrive at all_reduce #3 (f32 x 1000) within 30s: "
                                "it has left the group"));
}

TEST_F(MpiRun, AnOddCallIsTheSameErrorOnAllRanks) {
  const std::string output = Run(3, FreePort(), "odd");
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(output, ContainsRegex(absl::StrCat(
                            "rank ", rank,
                            ": FAILED_PRECONDITION: rank 2 called all_reduce #3 .f32 x 999. at "
                            "rank_of_test.cc:[0-9]+, but the other 2 ranks called all_reduce #3 "
                            ".f32 x 1000. at rank_of_test.cc")));
  }
}

// mpirun notices and ends the job: no rank hangs.
TEST_F(MpiRun, ADeadRankEndsTheJob) {
  const absl::Time start = absl::Now();
  const std::string output = Run(3, FreePort(), "die");
  EXPECT_THAT(output, HasSubstr("signal 9"));
  EXPECT_THAT(output, Not(HasSubstr("no error")));
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
}

// The classic mistake: each rank in a job of its own.
TEST_F(MpiRun, SeveralJobsAreRefused) {
  const int port = FreePort();
  std::string outputs[2];
  std::vector<std::thread> jobs;
  for (const int rank : {0, 1}) {
    jobs.emplace_back([&, rank] {
      outputs[rank] = Run(1, port, "alone", absl::StrCat("MORE_RANKS=1 FIRST_RANK=", rank));
    });
  }
  for (std::thread& job : jobs) job.join();
  EXPECT_THAT(outputs[0],
              HasSubstr("the world of MPI has size 1 for rank 0, group world has size 2"));
}

}  // namespace
}  // namespace plinth::comm
