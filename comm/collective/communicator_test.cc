// The communicator on threads of one process: order, asynchrony, arguments, mismatches. What
// needs processes (other transports, dying ranks) is in communicator_process_test.cc.
#include "plinth/comm/collective/communicator.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "plinth/comm/testing/collective_cases.h"
#include "plinth/comm/testing/ranks.h"
#include "plinth/comm/transport/mem/connect.h"
#include "plinth/comm/transport/shared_space.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::plinth::comm::testing::CheckAllCollectives;
using ::plinth::comm::testing::RunThreads;
using ::plinth::testing::StatusIs;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kTimeout = absl::Seconds(20);

TEST(Communicator, AllCollectivesMatchTheReference) {
  constexpr int64_t kCounts[] = {0, 1, 7, 1000};
  for (int size = 1; size <= 5; ++size) {
    EXPECT_THAT(RunThreads(size, kTimeout,
                           [&](Communicator& comm) { return CheckAllCollectives(comm, kCounts); }),
                Each(IsEmpty()));
  }
}

// Asks every rank for a description, and at the end says of which ranks it got one.
class DescribedRanks final : public Backend {
 public:
  std::string_view name() const override { return "described"; }
  size_t Describe(const CollectiveCall&, std::span<std::byte> to) override {
    to[0] = std::byte{1};
    return 1;
  }
  absl::Status Run(const CollectiveCall& call, absl::Time) override {
    std::string ranks;
    for (const auto description : call.descriptions) ranks += description.empty() ? '-' : '+';
    return absl::CancelledError(ranks);
  }
  void Abort() override {}
};

TEST(Communicator, ABackendKnowsTheBuffersOfAllRanks) {
  using Call = std::function<absl::Status(Communicator&, Buffer all, Buffer own)>;
  const Call calls[] = {
      [](Communicator& c, Buffer all, Buffer own) { return c.Broadcast(own, 1); },
      [](Communicator& c, Buffer all, Buffer own) { return c.Scatter(all, own, 1); },
      [](Communicator& c, Buffer all, Buffer own) { return c.Gather(own, all, 1); },
      [](Communicator& c, Buffer all, Buffer own) { return c.Reduce(own, own, 1); },
  };
  for (size_t i = 0; i < std::size(calls); ++i) {
    const auto options = [](int) {
      GroupOptions group;
      group.timeout = kTimeout;
      group.backends.push_back(std::make_unique<DescribedRanks>());
      return group;
    };
    const auto reports = RunThreads(3, options, [&](Communicator& comm) {
      std::vector<float> all(3000);
      std::vector<float> own(1000);
      return calls[i](comm, BufferOf(std::span<float>(all)), BufferOf(std::span<float>(own)))
          .ToString();
    });
    EXPECT_THAT(reports, Each(HasSubstr("+++"))) << i;
  }
}

// Registered memory, as all is between threads, is used where it lies.
TEST(Communicator, ALargeBroadcastBetweenTwoRanksIsNotStaged) {
  std::vector<std::unique_ptr<Transport>> ends = ConnectMem(2);
  SharedSpace& space = *ends[0]->shared();
  std::memset(space.staging(0), 7, space.staging_bytes());
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      Communicator comm(std::move(ends[rank]), kTimeout);
      std::vector<char> values((size_t{8} << 20) + 5, static_cast<char>(rank));
      EXPECT_OK(
          comm.Broadcast({values.data(), static_cast<int64_t>(values.size()), DType::kU8}, 0));
      EXPECT_EQ(values.back(), 0);
      EXPECT_OK(comm.Barrier());
      if (rank == 0) {
        const auto* staging = space.staging(0);
        EXPECT_TRUE(std::all_of(staging, staging + space.staging_bytes(),
                                [](std::byte b) { return b == std::byte{7}; }));
      }
      EXPECT_OK(comm.Barrier());
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

TEST(Communicator, AWorldOfOneNeedsNobody) {
  ASSERT_OK_AND_ASSIGN(const auto comm, Communicator::Create(CommOptions{}));
  std::array<float, 3> values = {1, 2, 3};
  ASSERT_OK(comm->AllReduce(BufferOf(std::span<float>(values)), ReduceOp::kAvg));
  EXPECT_THAT(values, ::testing::ElementsAre(1, 2, 3));
  ASSERT_OK(comm->Barrier());
}

// Each round depends on the one before, so any change of order gives another number.
TEST(Communicator, AsynchronousAndBlockingCallsKeepTheirOrder) {
  constexpr int kRounds = 50;
  const auto body = [](Communicator& comm) -> std::string {
    std::vector<double> chain(3000, comm.rank() + 1.0);
    const Buffer buffer = BufferOf(std::span<double>(chain));
    std::vector<std::unique_ptr<Work>> works;
    double want = comm.size() * (comm.size() + 1) / 2.0;
    for (int round = 0; round < kRounds; ++round) {
      works.push_back(comm.AllReduceAsync(buffer, ReduceOp::kSum));
      const absl::Status blocking = comm.AllReduce(buffer, ReduceOp::kAvg);
      if (!blocking.ok()) return blocking.ToString();
      if (chain.front() != want || chain.back() != want) return "wrong value";
      if (!works.back()->Wait(kTimeout).ok()) return "the earlier call has not ended";
      works.push_back(comm.AllReduceAsync(buffer, ReduceOp::kMax));
      want *= comm.size();
    }
    return "";
  };
  EXPECT_THAT(RunThreads(3, kTimeout, body), Each(IsEmpty()));
}

TEST(Communicator, ManyBucketsAreInFlightAtOnce) {
  const auto body = [](Communicator& comm) -> std::string {
    std::vector<std::vector<float>> buckets(40);
    std::vector<std::unique_ptr<Work>> works;
    for (size_t i = 0; i < buckets.size(); ++i) {
      buckets[i].assign(i * 101, static_cast<float>(i));
      works.push_back(comm.AllReduceAsync(BufferOf(std::span<float>(buckets[i]))));
    }
    for (size_t i = 0; i < works.size(); ++i) {
      const absl::Status status = works[i]->Wait(kTimeout);
      if (!status.ok()) return status.ToString();
      for (const float value : buckets[i]) {
        if (value != static_cast<float>(i) * comm.size()) return "wrong value";
      }
    }
    return "";
  };
  EXPECT_THAT(RunThreads(4, kTimeout, body), Each(IsEmpty()));
}

TEST(Communicator, WaitGivesUpWhileTheOperationGoesOn) {
  const auto body = [](Communicator& comm) -> std::string {
    float value = 1;
    if (comm.rank() == 1) absl::SleepFor(absl::Milliseconds(300));
    const std::unique_ptr<Work> work = comm.AllReduceAsync(BufferOf(std::span<float>(&value, 1)));
    if (comm.rank() == 0 &&
        work->Wait(absl::Milliseconds(20)).code() != absl::StatusCode::kDeadlineExceeded) {
      return "did not give up";
    }
    const absl::Status status = work->Wait(kTimeout);
    return status.ok() && value == 2 ? "" : "wrong end: " + status.ToString();
  };
  EXPECT_THAT(RunThreads(2, kTimeout, body), Each(IsEmpty()));
}

// Dropping the handle and the communicator loses nothing: both wait for the buffer's end of use.
TEST(Communicator, DestructionEndsWhatIsOutstanding) {
  std::vector<float> values(2, 1.0f);
  const auto body = [&](Communicator& comm) -> std::string {
    if (comm.rank() == 1) absl::SleepFor(absl::Milliseconds(50));
    comm.AllReduceAsync(BufferOf(std::span<float>(&values[comm.rank()], 1)));
    return values[comm.rank()] == 2 ? "" : "not waited for";
  };
  EXPECT_THAT(RunThreads(2, kTimeout, body), Each(IsEmpty()));
}

// Names what it is told of a group, in order.
class GroupLife final : public CallObserver {
 public:
  uint32_t GroupFormed(const GroupInfo&) override { return Add("formed"); }
  void GroupLeaving(uint32_t) override { Add("leaving"); }
  void GroupEnded(uint32_t) override { Add("ended"); }
  uint64_t Queued(uint32_t, const CollectiveCall&) override { return 0; }
  void Started(uint64_t, uint64_t) override {}
  void Arrived(uint64_t) override {}
  void Finished(uint64_t, const absl::Status&, int64_t, int64_t) override { Add("finished"); }

  std::vector<std::string> events() {
    std::lock_guard lock(mutex_);
    return events_;
  }

 private:
  uint32_t Add(const char* event) {
    std::lock_guard lock(mutex_);
    events_.push_back(event);
    return 0;
  }
  std::mutex mutex_;  // guards what follows
  std::vector<std::string> events_;
};

// A call that was made before runs on, so its end comes between the two.
TEST(Communicator, ObserversHearWhenARankBeginsToLeave) {
  std::vector<std::unique_ptr<Transport>> ends = ConnectMem(2);
  const auto life = std::make_shared<GroupLife>();
  GroupOptions options;
  options.timeout = kTimeout;
  options.observer = life;
  auto leaving = std::make_unique<Communicator>(std::move(ends[0]), std::move(options));
  const std::unique_ptr<Work> work = leaving->BarrierAsync();
  std::thread peer([&] {
    Communicator comm(std::move(ends[1]), kTimeout);
    while (life->events().size() < 2) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_OK(comm.Barrier());
  });
  leaving.reset();
  peer.join();
  EXPECT_THAT(life->events(), ElementsAre("formed", "leaving", "finished", "ended"));
}

TEST(Communicator, WrongArgumentsAreRefusedAndHarmNothing) {
  const auto body = [](Communicator& comm) -> std::string {
    std::vector<int32_t> ints(4);
    std::vector<float> floats(4);
    const Buffer i = BufferOf(std::span<int32_t>(ints));
    const Buffer f = BufferOf(std::span<float>(floats));
    const absl::Status refused[] = {
        comm.AllReduce(i, ReduceOp::kAvg),
        comm.AllReduce({nullptr, 3, DType::kF32}),
        comm.AllReduce({floats.data(), -1, DType::kF32}),
        comm.AllReduceAsync(i, ReduceOp::kAvg)->Wait(kTimeout),
        comm.AllGather(f, f),
        comm.AllGather({floats.data(), 2, DType::kF32}, i),
        comm.ReduceScatter(f, f),
        comm.Broadcast(f, 2),
        comm.Broadcast(f, -1),
    };
    for (const absl::Status& status : refused) {
      if (!absl::IsInvalidArgument(status)) return "not refused: " + status.ToString();
    }
    const absl::Status after = comm.AllReduce(f);
    return after.ok() ? "" : after.ToString();
  };
  EXPECT_THAT(RunThreads(2, kTimeout, body), Each(IsEmpty()));
}

// One rank calls something else: all get the same text at once, and again on the next call.
TEST(Communicator, AMismatchNamesTheOddRankEverywhere) {
  using Call = std::function<absl::Status(Communicator&, std::vector<float>&)>;
  const Call usual = [](Communicator& c, std::vector<float>& v) {
    return c.AllReduce(BufferOf(std::span<float>(v)));
  };
  const struct {
    Call odd;
    std::string text;
  } kCases[] = {
      {[](Communicator& c, std::vector<float>& v) {
         return c.AllReduce(BufferOf(std::span<float>(v).first(7)));
       },
       "all_reduce #2 (f32 x 7)"},
      {[](Communicator& c, std::vector<float>& v) {
         return c.AllReduce({v.data(), 8, DType::kI32});
       },
       "all_reduce #2 (i32 x 8)"},
      {[](Communicator& c, std::vector<float>& v) {
         return c.AllReduce(BufferOf(std::span<float>(v)), ReduceOp::kMax);
       },
       "all_reduce #2 (f32 x 8, max)"},
      {[](Communicator& c, std::vector<float>& v) {
         return c.Broadcast(BufferOf(std::span<float>(v)), 1);
       },
       "broadcast #2 (f32 x 8, root 1)"},
      {[](Communicator& c, std::vector<float>&) { return c.Barrier(); }, "barrier #2"},
  };
  for (const auto& test : kCases) {
    const std::string want = "FAILED_PRECONDITION: rank 2 called " + test.text +
                             ", but the other 3 ranks called all_reduce #2 (f32 x 8)";
    const absl::Time start = absl::Now();
    EXPECT_THAT(RunThreads(4, kTimeout,
                           [&](Communicator& comm) -> std::string {
                             std::vector<float> values(8);
                             if (!comm.Barrier().ok()) return "barrier";
                             const absl::Status first =
                                 (comm.rank() == 2 ? test.odd : usual)(comm, values);
                             if (comm.Barrier() != first) return "usable after a mismatch";
                             // Where the calls stand is checked on its own.
                             static const std::regex site(" at communicator_test.cc:[0-9]+");
                             const std::string text = first.ToString();
                             const auto sites = std::distance(
                                 std::sregex_iterator(text.begin(), text.end(), site), {});
                             return sites == 2 ? std::regex_replace(text, site, "") : text;
                           }),
                Each(want));
    EXPECT_LT(absl::Now() - start, absl::Seconds(1));
  }
}

TEST(Communicator, ARankThatLeavesIsNamed) {
  const auto body = [](Communicator& comm) -> std::string {
    std::vector<float> values(100000, 1.0f);
    const absl::Status first = comm.AllReduce(BufferOf(std::span<float>(values)));
    if (!first.ok()) return first.ToString();
    return comm.rank() == 1 ? "" : comm.Barrier().ToString();
  };
  const std::vector<std::string> reports = RunThreads(3, kTimeout, body);
  EXPECT_EQ(reports[1], "");
  for (const int rank : {0, 2}) {
    EXPECT_THAT(reports[rank], HasSubstr("rank 1 did not arrive at barrier #2 within 20s: it has "
                                         "left the group"));
  }
}

TEST(Communicator, OptionsThatContradictThemselvesAreRefused) {
  CommOptions options;
  options.rank = 2;
  options.size = 2;
  EXPECT_THAT(Communicator::Create(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank 2")));
  options.rank = 0;
  options.transport = TransportKind::kShm;
  EXPECT_THAT(Communicator::Create(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("only 1 of 2 ranks")));
  options.timeout = absl::ZeroDuration();
  EXPECT_THAT(Communicator::Create(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("timeout")));
}

}  // namespace
}  // namespace plinth::comm
