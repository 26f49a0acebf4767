// Random legal programs: collectives and messages, blocking and asynchronous with several under
// way, in groups that overlap, one call in this and the next in that. Results are right and nothing
// alarms. For longer:
//   PLINTH_LEGAL_SECONDS=3600 bazel run //comm/testing:legal_programs_test
#include "plinth/comm/testing/legal_programs.h"

#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "plinth/comm/testing/ranks.h"
#include "plinth/hardware/base/rng.h"

namespace plinth::comm::testing {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr int kCallsOfAProgram = 40;
constexpr size_t kMostUnderWay = 4;  // calls of one rank, in all groups together
// Five sizes between threads, two between processes over each of two transports.
constexpr int kParts = 9;

absl::Duration TimeOfTheRun() {
  const char* text = std::getenv("PLINTH_LEGAL_SECONDS");
  int seconds = 0;
  return absl::Seconds(text != nullptr && absl::SimpleAtoi(text, &seconds) ? seconds : 2);
}

// What is under way of one program on one rank.
class Program {
 public:
  Program(std::vector<Communicator*> groups, uint64_t seed)
      : groups_(std::move(groups)), seed_(seed) {}

  std::string Run() {
    const uint64_t key = RngKey(seed_, "interleaving");
    for (uint64_t index = 1; index <= kCallsOfAProgram; ++index) {
      Communicator& comm = *groups_[RandomBits(key, index, 0) % groups_.size()];
      const LegalCall call = CallOrMessageOf(seed_, index, comm.size());
      under_way_.push_back(StartCall(comm, call, seed_, index, kPatience));
      FinishOldest(call.async ? RandomBits(key, index, 1) % kMostUnderWay : 0);
    }
    FinishOldest(0);
    return status_.ok() ? "" : status_.ToString();
  }

 private:
  void FinishOldest(size_t keep) {
    while (under_way_.size() > keep) {
      status_.Update(under_way_.front()->Finish());
      under_way_.pop_front();
    }
  }

  const std::vector<Communicator*> groups_;
  const uint64_t seed_;
  std::deque<std::unique_ptr<PendingCall>> under_way_;
  absl::Status status_;
};

// Programs until the time is over; all ranks stop after the same one, as rank 0 says.
std::string RunUntil(Communicator& comm, absl::Time end) {
  const auto half = comm.Split(comm.rank() % 2, comm.rank(), "half");
  if (!half.ok()) return half.status().ToString();
  const auto backwards = comm.Split(0, -comm.rank(), "backwards");
  if (!backwards.ok()) return backwards.status().ToString();
  for (uint64_t seed = 1;; ++seed) {
    const std::string failure = Program({&comm, half->get(), backwards->get()}, seed).Run();
    if (!failure.empty()) return failure;
    int32_t go_on = absl::Now() < end ? 1 : 0;
    const absl::Status status = comm.Broadcast(BufferOf(std::span<int32_t>(&go_on, 1)), 0);
    if (!status.ok()) return status.ToString();
    if (go_on == 0) return "";
  }
}

TEST(LegalPrograms, NeverAlarmBetweenThreads) {
  for (const int size : {1, 2, 3, 5, 8}) {
    const absl::Time end = absl::Now() + TimeOfTheRun() / kParts;
    const auto reports = RunThreads(
        size, kPatience, [&](Communicator& comm) { return RunUntil(comm, end); },
        TimeOfTheRun() / kParts + RanksPatience());
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
    const absl::Time end = absl::Now() + TimeOfTheRun() / kParts;
    const auto outcomes = RunProcesses(
        size,
        [&](int rank) -> std::string {
          const auto comm =
              Communicator::Create(LocalOptions(rank, size, port, GetParam(), kPatience));
          return comm.ok() ? RunUntil(**comm, end) : comm.status().ToString();
        },
        TimeOfTheRun() / kParts + RanksPatience());
    for (const RankOutcome& outcome : outcomes) {
      EXPECT_EQ(outcome.report, "");
      EXPECT_EQ(outcome.signal, 0);
    }
  }
}

}  // namespace
}  // namespace plinth::comm::testing
