// What ranks are told when one of them does something else, or nothing.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/comm/collective/communicator.h"
#include "plinth/comm/testing/ranks.h"

namespace plinth::comm {
namespace {

using ::plinth::comm::testing::RunThreads;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

constexpr absl::Duration kTimeout = absl::Seconds(20);

Buffer Floats(std::vector<float>& values) { return BufferOf(std::span<float>(values)); }

// Without std::regex, whose character tables ThreadSanitizer sees being filled by several ranks.
std::string WithoutSites(std::string text) {
  constexpr std::string_view kFile = " at verdicts_test.cc:";
  for (size_t at = text.find(kFile); at != std::string::npos; at = text.find(kFile, at)) {
    text.erase(at, text.find_first_not_of("0123456789", at + kFile.size()) - at);
  }
  return text;
}

// Calls without elements, and v-operations in which some ranks have none, keep their order
// and still wait for every rank.
TEST(EmptyCalls, WaitForEveryRank) {
  using Call = std::function<absl::Status(Communicator&)>;
  const Buffer none{nullptr, 0, DType::kF32};
  const std::vector<int64_t> zeros(3, 0);
  const Call calls[] = {
      [&](Communicator& c) { return c.AllReduce(none); },
      [&](Communicator& c) { return c.Reduce(none, none, 1); },
      [&](Communicator& c) { return c.ReduceScatter(none, none); },
      [&](Communicator& c) { return c.ReduceScatterV(none, none, zeros); },
      [&](Communicator& c) { return c.AllGather(none, none); },
      [&](Communicator& c) { return c.AllGatherV(none, none, zeros); },
      [&](Communicator& c) { return c.Broadcast(none, 2); },
      [&](Communicator& c) { return c.Gather(none, none, 0); },
      [&](Communicator& c) { return c.Scatter(none, none, 2); },
      [&](Communicator& c) { return c.AllToAll(none, none); },
      [&](Communicator& c) { return c.AllToAllV(none, zeros, none, zeros); },
      [&](Communicator& c) { return c.Barrier(); },
  };
  std::atomic<size_t> entered = 0;  // by the last rank
  EXPECT_THAT(RunThreads(3, kTimeout,
                         [&](Communicator& comm) -> std::string {
                           for (size_t i = 0; i < std::size(calls); ++i) {
                             if (comm.rank() == 2) {
                               absl::SleepFor(absl::Milliseconds(5));
                               entered = i + 1;
                             }
                             const absl::Status status = calls[i](comm);
                             if (!status.ok()) return status.ToString();
                             if (entered < i + 1) return absl::StrCat("call ", i, " did not wait");
                           }
                           return "";
                         }),
              Each(IsEmpty()));
}

// One rank calls something else; every rank gets the same line, which names it.
TEST(Mismatches, InListsNameTheOddRank) {
  using Call = std::function<absl::Status(Communicator&, std::vector<float>&)>;
  const auto gather = [](std::vector<int64_t> counts) -> Call {
    return [counts](Communicator& c, std::vector<float>& v) {
      const ConstBuffer in{v.data(), counts[c.rank()], DType::kF32};
      std::vector<float> out(6);
      int64_t sum = 0;
      for (const int64_t count : counts) sum += count;
      return c.AllGatherV(in, {out.data(), sum, DType::kF32}, counts);
    };
  };
  const auto all_to_all = [](int64_t to_first, int64_t from_last) -> Call {
    return [=](Communicator& c, std::vector<float>& v) {
      std::vector<float> out(8);
      const std::vector<int64_t> sends = {c.rank() == 2 ? to_first : 1, 1, 1};
      const std::vector<int64_t> receives = {1, 1, c.rank() == 0 ? from_last : 1};
      return c.AllToAllV({v.data(), sends[0] + 2, DType::kF32}, sends,
                         {out.data(), receives[2] + 2, DType::kF32}, receives);
    };
  };
  const auto subgroup = [](std::vector<int> ranks) -> Call {
    return [ranks](Communicator& c, std::vector<float>&) { return c.Subgroup(ranks).status(); };
  };
  const struct {
    Call usual;
    Call odd;  // of rank 2
    std::string text;
  } cases[] = {
      {gather({1, 2, 3}), gather({1, 1, 3}),
       "rank 2 passed counts 1, 1, 3 to all_gather_v #2 (f32 x 5), but the other 2 ranks passed "
       "counts 1, 2, 3 to all_gather_v #2 (f32 x 6)"},
      {all_to_all(1, 1), all_to_all(2, 1),
       "rank 2 sends 2 elements to rank 0 in all_to_all_v #2 (f32), but rank 0 expects 1 in "
       "all_to_all_v #2 (f32)"},
      {subgroup({0, 1, 2}), subgroup({2, 1}),
       "rank 2 passed ranks 2, 1 to split #2, but the other 2 ranks passed ranks 0, 1, 2 to "
       "split #2"},
  };
  for (const auto& test : cases) {
    const absl::Time start = absl::Now();
    EXPECT_THAT(
        RunThreads(3, kTimeout,
                   [&](Communicator& comm) -> std::string {
                     std::vector<float> values(8);
                     if (!comm.Barrier().ok()) return "barrier";
                     return WithoutSites(
                         (comm.rank() == 2 ? test.odd : test.usual)(comm, values).ToString());
                   }),
        Each("FAILED_PRECONDITION: " + test.text));
    EXPECT_LT(absl::Now() - start, absl::Seconds(1));
  }
}

TEST(Mismatches, AnExtraCallIsTheOddOne) {
  EXPECT_THAT(RunThreads(4, kTimeout,
                         [](Communicator& comm) -> std::string {
                           std::vector<float> values(8);
                           if (comm.rank() == 2) {
                             const absl::Status extra = comm.Barrier();
                             return WithoutSites(extra.ToString());
                           }
                           return WithoutSites(comm.AllReduce(Floats(values)).ToString());
                         }),
              Each("FAILED_PRECONDITION: rank 2 called barrier #1, but the other 3 ranks called "
                   "all_reduce #1 (f32 x 8)"));
}

TEST(Mismatches, SendsAndReceivesThatDoNotMatchShowBothSides) {
  const auto run = [](const std::function<absl::Status(Communicator&, std::vector<float>&)>& call) {
    return RunThreads(2, kTimeout, [&](Communicator& comm) -> std::string {
      std::vector<float> values(8);
      const absl::Status status = call(comm, values);
      const absl::Status after = comm.Barrier();
      if (after != status) return "usable after a mismatch: " + after.ToString();
      return status.ToString();
    });
  };
  EXPECT_THAT(
      run([](Communicator& c, std::vector<float>& v) {
        if (c.rank() == 0) return c.Send(Floats(v), 1);
        return c.Receive({v.data(), 7, DType::kF32}, 0);
      }),
      Each(MatchesRegex("FAILED_PRECONDITION: rank 0 called send #1 \\(f32 x 8, to rank 1\\) at "
                        "verdicts_test.cc:[0-9]+, but rank 1 called receive #1 \\(f32 x 7, from "
                        "rank 0\\) at verdicts_test.cc:[0-9]+")));
  EXPECT_THAT(
      run([](Communicator& c, std::vector<float>& v) { return c.Send(Floats(v), 1 - c.rank()); }),
      Each(HasSubstr("but rank 1 called send #1 (f32 x 8, to rank 0)")));
  EXPECT_THAT(run([](Communicator& c, std::vector<float>& v) {
                const SendTo sends[] = {{1, Floats(v)}, {1, Floats(v)}};
                if (c.rank() == 0) return c.Exchange(sends, {});
                return c.Receive(Floats(v), 0);
              }),
              Each(HasSubstr("rank 0 called exchange #1 with 2 sends to and 0 receives from rank "
                             "1")));
}

TEST(Mismatches, ASendThatMeetsACallOfTheGroupIsToldAtOnce) {
  using Call = std::function<absl::Status(Communicator&, std::vector<float>&)>;
  const struct {
    Call call;  // of rank 1
    std::string text;
  } cases[] = {
      {[](Communicator& c, std::vector<float>& v) { return c.Send(Floats(v), 0); },
       "send #1 (f32 x 8, to rank 0)"},
      {[](Communicator& c, std::vector<float>& v) { return c.Receive(Floats(v), 0); },
       "receive #1 (f32 x 8, from rank 0)"},
      {[](Communicator& c, std::vector<float>& v) {
         const SendTo sends[] = {{0, Floats(v)}, {0, Floats(v)}};
         return c.Exchange(sends, {});
       },
       "exchange #1 with 2 sends to and 0 receives from rank 0"},
  };
  for (const auto& test : cases) {
    for (const int first : {0, 1}) {
      const absl::Time start = absl::Now();
      EXPECT_THAT(RunThreads(2, kTimeout,
                             [&](Communicator& comm) {
                               std::vector<float> values(8);
                               if (comm.rank() != first) absl::SleepFor(absl::Milliseconds(50));
                               const absl::Status status = comm.rank() == 1
                                                               ? test.call(comm, values)
                                                               : comm.AllReduce(Floats(values));
                               return WithoutSites(status.ToString());
                             }),
                  Each("FAILED_PRECONDITION: rank 1 called " + test.text +
                       ", but rank 0 called all_reduce #1 (f32 x 8)"));
      EXPECT_LT(absl::Now() - start, absl::Seconds(5));
    }
  }
}

// A rank that does not come is named with the call, and with what it called last.
TEST(LateRanks, AreNamedWithTheirLastCall) {
  const auto reports = RunThreads(4, absl::Milliseconds(200), [](Communicator& comm) {
    std::vector<float> values(8);
    const float own[] = {1, 2};
    absl::Status status = comm.AllGather(BufferOf(std::span<const float>(own)), Floats(values));
    if (comm.rank() == 3) absl::SleepFor(absl::Milliseconds(500));
    return absl::StrCat(status.ToString(), " ", comm.AllReduce(Floats(values)).ToString());
  });
  for (const std::string& report : reports) {
    EXPECT_THAT(report, HasSubstr("rank 3 did not arrive at all_reduce #2 (f32 x 8) within 200ms; "
                                  "its last call was all_gather #1 (f32 x 2) at "
                                  "verdicts_test.cc:"));
  }
}

TEST(Verdicts, ACallMayHaveALimitOfItsOwn) {
  const auto reports = RunThreads(2, kTimeout, [](Communicator& comm) {
    if (comm.rank() == 1) absl::SleepFor(absl::Milliseconds(300));
    return comm.Barrier(absl::Milliseconds(50)).ToString();
  });
  EXPECT_THAT(reports, Each(HasSubstr("rank 1 did not arrive at barrier #1 within 50ms")));
}

TEST(Verdicts, AbortEndsWhatWaitsAndWhatComes) {
  const auto reports = RunThreads(3, kTimeout, [](Communicator& comm) -> std::string {
    std::vector<float> values(8);
    if (comm.rank() == 1) {
      const std::unique_ptr<Work> pending = comm.AllReduceAsync(Floats(values));
      const std::unique_ptr<Work> queued = comm.BarrierAsync();
      absl::SleepFor(absl::Milliseconds(20));
      if (pending->Done()) return "ended early";
      comm.Abort("loss is not a number");
      if (pending->Wait(kTimeout) != queued->Wait(kTimeout)) return "differ";
      if (!pending->Done() || pending->status().ok()) return "not done";
      return comm.Barrier().ToString();
    }
    if (comm.rank() == 2) absl::SleepFor(absl::Milliseconds(50));
    return comm.AllReduce(Floats(values)).ToString();
  });
  EXPECT_EQ(reports, std::vector<std::string>(3,
                                              "ABORTED: aborted by rank 1: loss is not a "
                                              "number"));
}

TEST(Verdicts, GroupsHaveNamesAndRanksThoseOfTheLauncher) {
  const auto reports = RunThreads(4, absl::Milliseconds(300), [](Communicator& comm) {
    // Odd ranks in falling order: rank 3 is rank 0 of its group.
    auto group = comm.Split(comm.rank() % 2, -comm.rank(), "tp");
    if (!group.ok()) return group.status().ToString();
    double sum = comm.rank();
    const absl::Status status = (*group)->AllReduce(BufferOf(std::span<double>(&sum, 1)));
    if (!status.ok() || sum != (comm.rank() % 2 == 0 ? 2 : 4)) return "sum " + status.ToString();
    if ((*group)->rank() != (3 - comm.rank()) / 2) return absl::StrCat("rank ", (*group)->rank());
    if (comm.rank() == 3) absl::SleepFor(absl::Milliseconds(500));
    return (*group)->Barrier().ToString();
  });
  EXPECT_THAT(reports[1], HasSubstr("rank 3 did not arrive at barrier #2 of group tp within"));
  EXPECT_EQ(reports[0], "OK");
  EXPECT_EQ(reports[2], "OK");
}

TEST(Verdicts, SubgroupsAndRanksWithoutAGroup) {
  const auto reports = RunThreads(4, kTimeout, [](Communicator& comm) -> std::string {
    const std::vector<int> list = {3, 0, 1};
    auto group = comm.Subgroup(list, "pp");
    if (!group.ok()) return group.status().ToString();
    if (comm.rank() == 2) return *group == nullptr ? "" : "in a group it is not on the list of";
    if ((*group)->group().world_ranks != list) return "other ranks";
    auto none = (*group)->Split(Communicator::kNoColor, 0);
    if (!none.ok() || *none != nullptr) return "no color, but a group";
    auto alone = (*group)->Split(comm.rank(), 0);
    if (!alone.ok() || (*alone)->size() != 1) return "not alone";
    return (*alone)->Barrier().ok() && (*group)->Barrier().ok() ? "" : "barrier";
  });
  EXPECT_THAT(reports, Each(IsEmpty()));
}

// Remembers what it is told, in order.
class Listener final : public CallObserver {
 public:
  uint32_t GroupFormed(const GroupInfo& group) override { return 7; }
  void GroupEnded(uint32_t group) override { Tell(absl::StrCat("ended ", group)); }
  uint64_t Queued(uint32_t group, const CollectiveCall& call) override {
    Tell(absl::StrCat("queued ", group, " ", OpName(call.print.op), " ", call.site.line > 0));
    return 40 + ++calls_;
  }
  void Started(uint64_t call, uint64_t sequence) override {
    Tell(absl::StrCat("started ", call, " #", sequence));
  }
  void Arrived(uint64_t call) override { Tell(absl::StrCat("arrived ", call)); }
  void Finished(uint64_t call, const absl::Status& status, int64_t, int64_t) override {
    Tell(absl::StrCat("finished ", call, " ", status.ok()));
  }
  std::string text() const { return text_; }

 private:
  void Tell(const std::string& line) { text_ += line + "; "; }
  std::string text_;
  int calls_ = 0;
};

TEST(Verdicts, AnObserverSeesTheLifeOfACall) {
  const std::shared_ptr<Listener> listener = std::make_shared<Listener>();
  const auto options = [&](int rank) {
    GroupOptions group;
    group.timeout = absl::Milliseconds(100);
    if (rank == 0) group.observer = listener;
    return group;
  };
  RunThreads(2, options, [](Communicator& comm) -> std::string {
    std::vector<float> values(8);
    if (!comm.AllReduce(Floats(values)).ok()) return "call";
    const absl::Status status =
        comm.rank() == 0 ? comm.Send(Floats(values), 1) : comm.Receive(Floats(values), 0);
    if (comm.rank() == 1) absl::SleepFor(absl::Milliseconds(300));
    return comm.Barrier().ToString();
  });
  EXPECT_EQ(listener->text(),
            "queued 7 all_reduce 1; started 41 #1; arrived 41; finished 41 1; "
            "queued 7 send 1; started 42 #1; arrived 42; finished 42 1; "
            "queued 7 barrier 1; started 43 #2; finished 43 0; ended 7; ");
}

}  // namespace
}  // namespace plinth::comm
