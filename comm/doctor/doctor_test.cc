// Planted cases: what ranks recorded, and the verdict that a reader shall find.
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/comm/doctor/diagnose.h"
#include "plinth/comm/doctor/report.h"
#include "plinth/comm/doctor/run_view.h"
#include "plinth/comm/doctor/statistics.h"
#include "plinth/comm/recorder/dump.h"
#include "plinth/comm/recorder/recorder.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

namespace json = boost::json;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Fingerprint Print(OpKind op = OpKind::kAllReduce, int64_t count = 1024, int root = -1) {
  Fingerprint print;
  print.op = op;
  print.count = count;
  print.root = root;
  print.reduce = op == OpKind::kAllReduce ? ReduceOp::kSum : ReduceOp::kNone;
  return print;
}

// What one rank does in one group.
class Rank {
 public:
  explicit Rank(std::unique_ptr<FlightRecorder> recorder) : recorder_(std::move(recorder)) {}

  void Start(const Fingerprint& print = Print(), int line = 120) {
    call_ = recorder_->Queued(print, print.count * 4, "trainer.cc", line);
    recorder_->Started(call_, IsCollective(print.op) ? ++sequence_ : ++messages_);
  }
  void Arrive() { recorder_->Arrived(call_); }
  void Finish(bool ok = true) { recorder_->Finished(call_, ok, 0, 0); }
  void Complete(const Fingerprint& print = Print(), int line = 120) {
    Start(print, line);
    Arrive();
    Finish();
  }
  void Fail(FailureKind kind, const std::vector<int>& blamed, const std::string& text = "text") {
    Finish(false);
    recorder_->Failed(call_, kind, blamed, text);
  }
  void Queue() { recorder_->Queued(Print(), 0, "trainer.cc", 130); }
  void Leaving() { recorder_->Leaving(); }
  void Leave() { recorder_.reset(); }

 private:
  std::unique_ptr<FlightRecorder> recorder_;
  uint64_t call_ = 0, sequence_ = 0, messages_ = 0;
};

class DoctorTest : public ::testing::Test {
 protected:
  DoctorTest() {
    std::string name = absl::StrCat(::testing::TempDir(), "doctorXXXXXX");
    CHECK(mkdtemp(name.data()) != nullptr);
    directory_ = name;
  }
  ~DoctorTest() override { std::filesystem::remove_all(directory_); }

  std::vector<Rank> Form(const std::string& group, const std::vector<int>& world_ranks) {
    std::vector<Rank> ranks;
    for (int rank = 0; rank < static_cast<int>(world_ranks.size()); ++rank) {
      auto recorder = FlightRecorder::Create({.group = group,
                                              .rank = rank,
                                              .world_ranks = world_ranks,
                                              .transport = "shm",
                                              .directory = directory_,
                                              .records = 64});
      CHECK_OK(recorder.status());
      ranks.emplace_back(*std::move(recorder));
    }
    return ranks;
  }
  std::vector<Rank> World(int size) {
    std::vector<int> ranks;
    for (int rank = 0; rank < size; ++rank) ranks.push_back(rank);
    return Form("world", ranks);
  }

  // As a doctor on another machine sees it.
  void Read() {
    Read([](const FlightDump&) { return ProcessState::kUnknown; });
  }
  void Read(const ProcessProbe& probe) {
    auto directory = ReadDumpDirectory(directory_);
    ASSERT_OK(directory.status());
    dumps_ = *std::move(directory);
    run_ = MakeRunView(dumps_, probe, MonotonicNanoseconds());
    diagnosis_ = Diagnose(run_);
    report_ = TextReport(run_, diagnosis_, 8);
  }
  const Finding& verdict() const { return diagnosis_.verdict; }

  std::string directory_;
  DumpDirectory dumps_;
  RunView run_;
  Diagnosis diagnosis_;
  std::string report_;
};

TEST_F(DoctorTest, NothingWrong) {
  auto ranks = World(4);
  for (int call = 0; call < 5; ++call) {
    for (Rank& rank : ranks) rank.Complete();
  }
  for (Rank& rank : ranks) rank.Leave();
  Read();
  EXPECT_EQ(verdict().kind, FindingKind::kNone);
  EXPECT_EQ(verdict().text, "no fault found: all 4 ranks completed #5 of group world");
}

TEST_F(DoctorTest, ARankThatNeverEntered) {
  auto ranks = World(8);
  for (int call = 0; call < 11; ++call) {
    for (Rank& rank : ranks) rank.Complete();
  }
  for (int rank = 0; rank < 8; ++rank) {
    if (rank != 5) ranks[rank].Start();
  }
  ranks[2].Fail(FailureKind::kLate, {5});
  for (const int rank : {0, 1, 3, 4, 6, 7}) ranks[rank].Fail(FailureKind::kAborted, {5});
  Read();
  EXPECT_EQ(verdict().kind, FindingKind::kNeverEntered);
  EXPECT_THAT(verdict().ranks, ElementsAre(5));
  EXPECT_EQ(verdict().sequence, 12u);
  EXPECT_EQ(verdict().text,
            "rank 5 never entered all_reduce #12 of group world (f32 x 1024); last completed #11; "
            "its last call was at trainer.cc:120; 7 ranks waited 0.0 s");
  EXPECT_THAT(report_, StartsWith(verdict().text + "\n"));
}

TEST_F(DoctorTest, AStoppedProcessIsSaidToBeStopped) {
  auto ranks = World(2);
  ranks[0].Start();
  Read([](const FlightDump& dump) {
    return dump.rank == 1 ? ProcessState::kStopped : ProcessState::kRunning;
  });
  EXPECT_EQ(verdict().kind, FindingKind::kStopped);
  EXPECT_THAT(verdict().ranks, ElementsAre(1));
  EXPECT_EQ(verdict().sequence, 1u);
  EXPECT_EQ(verdict().text,
            absl::StrCat("rank 1 is stopped (process ", getpid(),
                         ") before all_reduce #1 of group world (f32 x 1024); nothing was heard of "
                         "it for 0.0 s; it had completed no call; 1 rank waited 0.0 s"));
}

// The same when it had entered the call, which from the records alone looks like a link.
TEST_F(DoctorTest, AProcessStoppedInACallIsNoLink) {
  auto ranks = World(3);
  for (Rank& rank : ranks) rank.Complete();
  for (Rank& rank : ranks) rank.Start();
  for (Rank& rank : ranks) rank.Arrive();
  ranks[0].Fail(FailureKind::kLate, {2});
  ranks[1].Fail(FailureKind::kAborted, {2});
  const auto probe = [](int stopped) {
    return [stopped](const FlightDump& dump) {
      return dump.rank >= stopped ? ProcessState::kStopped : ProcessState::kRunning;
    };
  };
  Read(probe(3));
  EXPECT_EQ(verdict().kind, FindingKind::kLink);
  Read(probe(2));
  EXPECT_EQ(verdict().kind, FindingKind::kStopped);
  EXPECT_THAT(verdict().ranks, ElementsAre(2));
  EXPECT_EQ(verdict().sequence, 2u);
  EXPECT_THAT(verdict().text, HasSubstr(") in all_reduce #2 of group world (f32 x 1024); nothing"));
  // Ranks that had failed before, and a whole job that was stopped, are not to blame.
  Read(probe(1));
  EXPECT_THAT(verdict().ranks, ElementsAre(2));
}

TEST_F(DoctorTest, ARunThatGoesOnIsNoFault) {
  auto ranks = World(3);
  for (Rank& rank : ranks) rank.Complete();
  ranks[0].Start();
  ranks[2].Start();
  Read([](const FlightDump&) { return ProcessState::kRunning; });
  EXPECT_EQ(verdict().kind, FindingKind::kNone);
  EXPECT_THAT(verdict().text, HasSubstr("not there yet: rank 1"));
}

TEST_F(DoctorTest, AMismatchShowsBothCallsAndWhere) {
  auto ranks = World(8);
  for (Rank& rank : ranks) rank.Complete();
  for (int rank = 0; rank < 8; ++rank) {
    ranks[rank].Start(rank == 2 ? Print(OpKind::kAllGather, 7) : Print(), rank == 2 ? 10 : 20);
    ranks[rank].Fail(FailureKind::kMismatch, {2});
  }
  Read();
  EXPECT_EQ(verdict().kind, FindingKind::kMismatch);
  EXPECT_THAT(verdict().ranks, ElementsAre(2));
  EXPECT_EQ(verdict().text,
            "rank 2 called all_gather #2 (f32 x 7) at trainer.cc:10, but the other 7 called "
            "all_reduce #2 of group world (f32 x 1024) at trainer.cc:20");
}

TEST_F(DoctorTest, AProcessThatEnded) {
  auto ranks = World(4);
  for (Rank& rank : ranks) rank.Complete();
  for (const int rank : {0, 1, 2}) {
    ranks[rank].Start();
    ranks[rank].Fail(rank == 1 ? FailureKind::kGone : FailureKind::kAborted, {3});
  }
  Read();
  EXPECT_EQ(verdict().kind, FindingKind::kProcessEnded);
  EXPECT_THAT(verdict().ranks, ElementsAre(3));
  EXPECT_THAT(verdict().text, StartsWith("rank 3's process ended without leaving the group"));
}

TEST_F(DoctorTest, ARankThatCameWhenOthersHadGivenUp) {
  auto ranks = World(3);
  for (Rank& rank : ranks) rank.Complete();
  ranks[0].Start();
  ranks[2].Start();
  ranks[0].Fail(FailureKind::kLate, {1});
  ranks[2].Fail(FailureKind::kAborted, {1});
  absl::SleepFor(absl::Milliseconds(2));
  ranks[1].Start();
  ranks[1].Fail(FailureKind::kAborted, {1});
  Read();
  EXPECT_EQ(verdict().kind, FindingKind::kCameLate);
  EXPECT_THAT(verdict().ranks, ElementsAre(1));
  EXPECT_EQ(verdict().sequence, 2u);
}

TEST_F(DoctorTest, OneCallTooMany) {
  auto ranks = World(4);
  for (Rank& rank : ranks) rank.Complete();
  for (const int rank : {0, 1, 3}) ranks[rank].Leave();
  ranks[2].Start(Print(OpKind::kBarrier), 33);
  ranks[2].Fail(FailureKind::kLeft, {0, 1, 3});
  Read();
  EXPECT_EQ(verdict().kind, FindingKind::kExtraCall);
  EXPECT_THAT(verdict().ranks, ElementsAre(2));
  EXPECT_EQ(verdict().text,
            "rank 2 called barrier #2 of group world at trainer.cc:33, which the other 3 never "
            "did: they left the group after #1");
}

TEST_F(DoctorTest, ARankThatLeftEarlyAndOneStuckInTearDown) {
  auto ranks = World(4);
  for (Rank& rank : ranks) rank.Complete();
  ranks[1].Leaving();
  for (const int rank : {0, 2, 3}) ranks[rank].Start();
  ranks[0].Fail(FailureKind::kLate, {1});
  Read();
  EXPECT_EQ(verdict().kind, FindingKind::kTearDown);
  EXPECT_THAT(verdict().ranks, ElementsAre(1));
  EXPECT_THAT(verdict().text, StartsWith("rank 1 tore the group down and did not enter"));
  ranks[1].Leave();
  Read();
  EXPECT_EQ(verdict().kind, FindingKind::kLeft);
  EXPECT_THAT(verdict().text, StartsWith("rank 1 left the group before all_reduce #2"));
}

// Seen from a third rank, which waits for the data of both.
TEST_F(DoctorTest, ALinkThatLetsNoNotesThrough) {
  auto ranks = World(4);
  for (Rank& rank : ranks) rank.Complete();
  for (Rank& rank : ranks) rank.Start();
  for (const int rank : {0, 2}) ranks[rank].Arrive();
  ranks[2].Fail(FailureKind::kLate, {1, 3});
  for (const int rank : {0, 1, 3}) ranks[rank].Fail(FailureKind::kAborted, {1, 3});
  Read();
  EXPECT_EQ(verdict().kind, FindingKind::kLink);
  EXPECT_THAT(verdict().ranks, ElementsAre(1, 3));
  EXPECT_THAT(verdict().text,
              StartsWith("rank 1 and rank 3 did not hear from each other in all_reduce #2"));
}

TEST_F(DoctorTest, ALinkThatLetsNoDataThrough) {
  auto ranks = World(4);
  for (Rank& rank : ranks) rank.Complete();
  for (Rank& rank : ranks) rank.Start();
  for (Rank& rank : ranks) rank.Arrive();
  ranks[0].Finish();
  ranks[1].Fail(FailureKind::kLate, {3});
  ranks[3].Fail(FailureKind::kAborted, {3});
  Read();
  EXPECT_EQ(verdict().kind, FindingKind::kLink);
  EXPECT_THAT(verdict().ranks, ElementsAre(1, 3));
  EXPECT_THAT(verdict().text, StartsWith("no data came from rank 3 to rank 1 in all_reduce #2"));
}

TEST_F(DoctorTest, MissingAndDamagedDumps) {
  auto ranks = World(4);
  for (const int rank : {0, 1, 2}) ranks[rank].Start();
  ranks[0].Fail(FailureKind::kLate, {3});
  std::filesystem::remove(directory_ + "/world.rank3.flight");
  std::ofstream(directory_ + "/world.rank3.flight") << "PLNFLIGHhalf of a dump";
  std::filesystem::resize_file(directory_ + "/world.rank1.flight", 9000);
  Read();
  EXPECT_EQ(verdict().kind, FindingKind::kNoDump);
  EXPECT_THAT(verdict().ranks, ElementsAre(3));
  EXPECT_THAT(report_, AllOf(HasSubstr("no dump of rank 3"), HasSubstr("cut short"),
                             HasSubstr("world.rank3.flight")));
}

// Rank 6 is missing in `tp`, which keeps ranks of `dp` from coming there.
TEST_F(DoctorTest, NestedGroupsLeadToTheRoot) {
  auto dp = Form("dp", {1, 5, 9});
  auto tp = Form("tp", {4, 5, 6, 7});
  for (Rank& rank : tp) rank.Complete();
  for (Rank& rank : dp) rank.Complete();
  dp[0].Start();
  dp[2].Start();
  absl::SleepFor(absl::Milliseconds(1));
  for (const int rank : {0, 1, 3}) tp[rank].Start();
  dp[0].Fail(FailureKind::kLate, {1});
  Read();
  EXPECT_EQ(verdict().group, "tp");
  EXPECT_THAT(verdict().world_ranks, ElementsAre(6));
  EXPECT_THAT(verdict().text, StartsWith("rank 6 never entered all_reduce #2 of group tp"));
  ASSERT_EQ(diagnosis_.others.size(), 1u);
  EXPECT_THAT(diagnosis_.others[0].text,
              StartsWith("rank 5 never entered all_reduce #2 of group dp"));
}

TEST_F(DoctorTest, GroupsCalledInDifferentOrders) {
  auto a = Form("a", {0, 1});
  auto b = Form("b", {0, 1});
  a[0].Start();
  b[1].Start();
  Read();
  EXPECT_EQ(verdict().kind, FindingKind::kCrossedGroups);
  EXPECT_THAT(verdict().text, AllOf(HasSubstr("rank 1 never entered all_reduce #1 of group a"),
                                    HasSubstr("rank 0 never entered all_reduce #1 of group b")));
}

TEST_F(DoctorTest, MessagesBetweenTwoRanks) {
  auto ranks = World(3);
  for (Rank& rank : ranks) rank.Complete();
  ranks[0].Complete(Print(OpKind::kSend, 8, 1));
  ranks[1].Complete(Print(OpKind::kReceive, 8, 0));
  ranks[0].Start(Print(OpKind::kReceive, 8, 1), 44);
  Read();
  EXPECT_EQ(verdict().kind, FindingKind::kNeverEntered);
  EXPECT_THAT(verdict().ranks, ElementsAre(1));
  EXPECT_THAT(verdict().text,
              StartsWith("rank 1 never made its part of receive #2 of group world (f32 x 8, from "
                         "rank 1) of rank 0 at trainer.cc:44"));
  ranks[1].Start(Print(OpKind::kSend, 9, 0), 45);
  Read();
  EXPECT_EQ(verdict().kind, FindingKind::kMismatch);
}

TEST_F(DoctorTest, QueuedCallsAreCounted) {
  auto ranks = World(2);
  ranks[0].Start();
  ranks[1].Queue();
  ranks[1].Queue();
  ranks[0].Fail(FailureKind::kLate, {1});
  Read();
  EXPECT_THAT(verdict().text, HasSubstr("2 more calls wait for their turn"));
}

TEST_F(DoctorTest, StragglersAreMeasured) {
  auto ranks = World(3);
  for (int call = 0; call < 5; ++call) {
    for (const int rank : {0, 2}) ranks[rank].Start();
    absl::SleepFor(absl::Milliseconds(3));
    ranks[1].Start();
    for (Rank& rank : ranks) rank.Arrive();
    for (Rank& rank : ranks) rank.Finish();
  }
  Read();
  const GroupStatistics statistics = MeasureGroup(run_.groups[0]);
  EXPECT_EQ(statistics.calls, 5);
  EXPECT_EQ(statistics.ranks[0].rank, 1);
  EXPECT_EQ(statistics.ranks[0].times_last, 5);
  EXPECT_GE(statistics.ranks[0].median_late_ns, 3000000);
  EXPECT_GE(statistics.ranks[0].waited_for_ns, 14000000);
  EXPECT_EQ(statistics.ranks[1].times_last, 0);
}

TEST_F(DoctorTest, JsonSaysTheSame) {
  auto ranks = Form("a \"b\"", {3, 4});
  ranks[0].Start();
  ranks[0].Fail(FailureKind::kLate, {1}, "with a \"quote\" and a \\");
  Read();
  const json::value report = json::parse(JsonReport(run_, diagnosis_));
  EXPECT_EQ(report.at("verdict").at("kind").as_string(), "never_entered");
  EXPECT_EQ(json::serialize(report.at("verdict").at("world_ranks")), "[4]");
  EXPECT_EQ(report.at("verdict").at("text").as_string(), verdict().text);
  const json::value& group = report.at("groups").at(0);
  EXPECT_EQ(group.at("name").as_string(), "a \"b\"");
  EXPECT_EQ(group.at("ranks").at(0).at("failure").as_string(), "with a \"quote\" and a \\");
}

// The parser refuses whatever is not UTF-8.
TEST_F(DoctorTest, JsonHoldsWhateverBytesAPathHas) {
  const std::string parent = directory_;
  directory_ += "/\xc3\xa9\x01\n\"\\\x80\xff";
  std::filesystem::create_directory(directory_);
  const auto ranks = World(2);
  std::ofstream(directory_ + "/\xfe.flight") << "no dump";
  Read();
  const json::value report = json::parse(JsonReport(run_, diagnosis_));
  const std::string shown = parent + "/\xc3\xa9\x01\n\"\\\xef\xbf\xbd\xef\xbf\xbd/";
  EXPECT_THAT(std::string(report.at("groups").at(0).at("ranks").at(1).at("dump").as_string()),
              StartsWith(shown));
  EXPECT_THAT(json::serialize(report.at("notes")), HasSubstr("\xef\xbf\xbd.flight"));
  directory_ = parent;
}

// Whatever the dumps say, with checksums that fit: an answer, and no crash.
TEST_F(DoctorTest, StrangeNumbersDoNoHarm) {
  auto ranks = World(3);
  for (Rank& rank : ranks) rank.Complete();
  ranks[0].Start(Print(OpKind::kSend, -7, 2000000000));
  ranks[1].Start(Print(static_cast<OpKind>(200), INT64_MIN, -5));
  ranks[1].Fail(static_cast<FailureKind>(3), {2});
  Read();
  EXPECT_FALSE(report_.empty());
  EXPECT_EQ(json::parse(JsonReport(run_, diagnosis_)).at("groups").as_array().size(), 1);
}

}  // namespace
}  // namespace plinth::comm
