#include "plinth/comm/testing/faults.h"

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plinth/comm/collective/communicator.h"
#include "plinth/comm/testing/collective_cases.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

std::vector<std::string> RunUnder(int size, const FaultPlan& plan, absl::Duration timeout,
                                  const std::function<std::string(Communicator&)>& body) {
  std::vector<std::unique_ptr<Transport>> ends = ConnectMemWithFaults(size, plan);
  std::vector<std::string> reports(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Communicator comm(std::move(ends[rank]), timeout);
      reports[rank] = body(comm);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return reports;
}

std::string FirstError(Communicator& comm) {
  std::vector<float> values(1000, 1);
  for (int call = 0; call < 10; ++call) {
    const absl::Status status = comm.AllReduce(BufferOf(std::span<float>(values)));
    if (!status.ok()) return std::string(status.message());
  }
  return "no error";
}

TEST(Faults, ReorderAndDelayChangeNoResult) {
  FaultPlan plan;
  for (int rank = 0; rank < 4; ++rank) plan.Reorder(rank, rank + 1);
  plan.Delay(1, 2, absl::Microseconds(50));
  constexpr int64_t kCounts[] = {0, 7, 3001};
  constexpr DType kDTypes[] = {DType::kF32};
  const auto reports = RunUnder(4, plan, absl::Seconds(20), [&](Communicator& comm) {
    return CheckAllCollectives(comm, kCounts, kDTypes);
  });
  for (const std::string& report : reports) EXPECT_EQ(report, "");
}

TEST(Faults, ACutLinkIsNamedByEveryRank) {
  FaultPlan plan;
  plan.CutLink(1, 3, 5);
  for (const std::string& report : RunUnder(4, plan, absl::Milliseconds(300), FirstError)) {
    // A third rank may be the first to give up: it names both.
    EXPECT_THAT(report, AnyOf(HasSubstr("rank 1 did not arrive at all_reduce #5"),
                              HasSubstr("rank 3 did not arrive at all_reduce #5"),
                              HasSubstr("ranks 1, 3 did not finish all_reduce #5")));
  }
}

TEST(Faults, ARankThatVanishesIsNamedByTheOthers) {
  FaultPlan plan;
  plan.Vanish(2, 4);
  const auto reports = RunUnder(4, plan, absl::Milliseconds(300), FirstError);
  for (const int rank : {0, 1, 3}) {
    EXPECT_THAT(reports[rank], HasSubstr("rank 2 did not arrive at all_reduce #4"));
  }
}

TEST(Faults, ANoteThatComesTwiceIsAMismatch) {
  FaultPlan plan;
  plan.RepeatNote(2, 4);
  const auto reports = RunUnder(4, plan, absl::Milliseconds(300), FirstError);
  for (const int rank : {0, 1, 3}) {
    EXPECT_THAT(reports[rank], HasSubstr("rank 2 called all_reduce #3"));
  }
}

}  // namespace
}  // namespace plinth::comm::testing
