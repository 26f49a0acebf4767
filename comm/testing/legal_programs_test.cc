// Random legal programs, blocking and asynchronous, in groups and groups of groups: results are
// right and nothing alarms. For longer:
//   PLINTH_LEGAL_SECONDS=3600 bazel run //comm/testing:legal_programs_test
#include "plinth/comm/testing/legal_programs.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "plinth/comm/testing/ranks.h"

namespace plinth::comm::testing {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr int kCallsOfAProgram = 40;

absl::Duration TimeOfTheRun() {
  const char* text = std::getenv("PLINTH_LEGAL_SECONDS");
  int seconds = 0;
  return absl::Seconds(text != nullptr && absl::SimpleAtoi(text, &seconds) ? seconds : 2);
}

std::string RunProgram(Communicator& comm, uint64_t seed) {
  for (uint64_t index = 1; index <= kCallsOfAProgram; ++index) {
    const absl::Status status =
        MakeCall(comm, CallOf(seed, index, comm.size()), seed, index, kPatience);
    if (!status.ok()) return status.ToString();
  }
  return "";
}

// One program in the whole group, then one in each half and with it in the whole again.
std::string RunNested(Communicator& comm, uint64_t seed, Communicator* half) {
  std::string failure = RunProgram(comm, seed);
  if (failure.empty() && half != nullptr) failure = RunProgram(*half, seed + 1000000);
  return failure;
}

// Programs until the time is over; all ranks stop after the same one, as rank 0 says.
std::string RunUntil(Communicator& comm, absl::Time end) {
  std::unique_ptr<Communicator> half;
  if (comm.size() > 3) {
    auto split = comm.Split(comm.rank() % 2, comm.rank(), "half");
    if (split.ok()) half = *std::move(split);
  }
  for (uint64_t seed = 1;; ++seed) {
    const std::string failure = RunNested(comm, seed, half.get());
    if (!failure.empty()) return failure;
    int32_t go_on = absl::Now() < end ? 1 : 0;
    const absl::Status status = comm.Broadcast(BufferOf(std::span<int32_t>(&go_on, 1)), 0);
    if (!status.ok()) return status.ToString();
    if (go_on == 0) return "";
  }
}

TEST(LegalPrograms, NeverAlarmBetweenThreads) {
  for (const int size : {1, 2, 3, 5, 8}) {
    const absl::Time end = absl::Now() + TimeOfTheRun() / 8;
    const auto reports =
        RunThreads(size, kPatience, [&](Communicator& comm) { return RunUntil(comm, end); });
    for (const std::string& report : reports) EXPECT_EQ(report, "");
  }
}

class BetweenProcesses : public ::testing::TestWithParam<TransportKind> {};

INSTANTIATE_TEST_SUITE_P(Transports, BetweenProcesses,
                         ::testing::Values(TransportKind::kShm, TransportKind::kTcp),
                         [](const auto& info) {
                           return info.param == TransportKind::kShm ? "Shm" : "Tcp";
                         });

TEST_P(BetweenProcesses, NeverAlarm) {
  for (const int size : {2, 5}) {
    const int port = FreePort();
    const absl::Time end = absl::Now() + TimeOfTheRun() / 8;
    const auto outcomes = RunProcesses(size, [&](int rank) -> std::string {
      const auto comm = Communicator::Create(LocalOptions(rank, size, port, GetParam(), kPatience));
      return comm.ok() ? RunUntil(**comm, end) : comm.status().ToString();
    });
    for (const RankOutcome& outcome : outcomes) {
      EXPECT_EQ(outcome.report, "");
      EXPECT_EQ(outcome.signal, 0);
    }
  }
}

}  // namespace
}  // namespace plinth::comm::testing
