#include "plinth/comm/recorder/recorder.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plinth/comm/recorder/dump.h"
#include "plinth/hardware/base/rng.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class RecorderTest : public ::testing::Test {
 protected:
  RecorderTest() {
    std::string name = absl::StrCat(temporary_, "/recorderXXXXXX");
    CHECK(mkdtemp(name.data()) != nullptr);
    directory_ = name;
  }
  ~RecorderTest() override {
    std::filesystem::remove_all(directory_);
    setenv("TEST_TMPDIR", temporary_.c_str(), 1);
  }

  RecorderOptions Options(int32_t records = 8) const {
    return {.group = "dp",
            .rank = 2,
            .world_ranks = {0, 3, 6, 9},
            .run = "run-7",
            .transport = "shm",
            .directory = directory_,
            .records = records};
  }
  std::string Path() const { return directory_ + "/run-7.dp.rank2.flight"; }

  const std::string temporary_ = ::testing::TempDir();  // some tests choose another
  std::string directory_;
};

Fingerprint Print(int64_t count = 1024) {
  Fingerprint print;
  print.count = count;
  print.op = OpKind::kAllReduce;
  print.reduce = ReduceOp::kAvg;
  print.dtype = DType::kBf16;
  return print;
}

Fingerprint PrintOf(uint64_t sequence) {
  Fingerprint print = Print();
  print.sequence = sequence;
  return print;
}

void Complete(FlightRecorder& recorder, uint64_t sequence) {
  const uint64_t call = recorder.Queued(Print(), 2048, "train/loop/trainer.cc", 120);
  recorder.Started(call, sequence);
  recorder.Arrived(call);
  recorder.Finished(call, true, 1000, 2000);
}

std::vector<std::byte> BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST_F(RecorderTest, WhatWasRecordedCanBeRead) {
  ASSERT_OK_AND_ASSIGN(const auto recorder, FlightRecorder::Create(Options()));
  Complete(*recorder, 1);
  const uint64_t call =
      recorder->Queued(Print(7), 14, std::string(200, 'd').append("/x.cc").c_str(), 9);
  recorder->Queued(Print(8), 16, "y.cc", 10);
  recorder->Started(call, 2);
  const int blamed[] = {1, 3};
  recorder->Failed(call, FailureKind::kLate, blamed, "ranks 1, 3 did not arrive");
  recorder->Failed(call, FailureKind::kAborted, {}, "the first one counts");
  recorder->Finished(call, false, 24, 0);
  recorder->Leaving();

  ASSERT_OK_AND_ASSIGN(const FlightDump dump, ReadDump(Path()));
  EXPECT_EQ(dump.group, "dp");
  EXPECT_EQ(dump.run, "run-7");
  EXPECT_EQ(dump.transport, "shm");
  EXPECT_EQ(dump.rank, 2);
  EXPECT_EQ(dump.size, 4);
  EXPECT_EQ(dump.world_ranks, (std::vector<int>{0, 3, 6, 9}));
  EXPECT_EQ(dump.process, getpid());
  EXPECT_GT(dump.process_start, 0);
  EXPECT_EQ(dump.life, GroupLife::kLeaving);
  EXPECT_EQ(dump.calls_made, 3u);
  EXPECT_EQ(dump.damaged_records, 0);
  EXPECT_FALSE(dump.cut_short);

  ASSERT_EQ(dump.calls.size(), 2u);
  const RecordedCall& first = dump.calls[0];
  EXPECT_EQ(first.print, PrintOf(1));
  EXPECT_EQ(first.bytes, 2048);
  EXPECT_EQ(first.state, CallState::kDone);
  EXPECT_EQ(first.bytes_sent, 1000);
  EXPECT_EQ(first.bytes_received, 2000);
  EXPECT_EQ(first.file, "train/loop/trainer.cc");
  EXPECT_EQ(first.line, 120);
  EXPECT_LE(first.queued_ns, first.started_ns);
  EXPECT_LE(first.started_ns, first.arrived_ns);
  EXPECT_LE(first.arrived_ns, first.finished_ns);
  const RecordedCall& second = dump.calls[1];
  EXPECT_EQ(second.state, CallState::kFailed);
  EXPECT_EQ(second.arrived_ns, 0);
  EXPECT_THAT(second.file, EndsWith("ddd/x.cc"));

  ASSERT_EQ(dump.queued.size(), 1u);
  EXPECT_EQ(dump.queued[0].print, Print(8));

  ASSERT_TRUE(dump.failure.has_value());
  EXPECT_EQ(dump.failure->sequence, 2u);
  EXPECT_EQ(dump.failure->kind, FailureKind::kLate);
  EXPECT_EQ(dump.failure->blamed, (std::vector<int>{1, 3}));
  EXPECT_EQ(dump.failure->text, "ranks 1, 3 did not arrive");
}

TEST_F(RecorderTest, TheRingKeepsTheLastCalls) {
  ASSERT_OK_AND_ASSIGN(const auto recorder, FlightRecorder::Create(Options(8)));
  for (uint64_t sequence = 1; sequence <= 21; ++sequence) Complete(*recorder, sequence);
  ASSERT_OK_AND_ASSIGN(const FlightDump dump, ReadDump(Path()));
  ASSERT_EQ(dump.calls.size(), 8u);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(dump.calls[i].print.sequence, 14 + i);
}

TEST_F(RecorderTest, AKilledProcessLeavesADump) {
  const pid_t child = fork();
  if (child == 0) {
    const auto recorder = FlightRecorder::Create(Options());
    Complete(**recorder, 1);
    (*recorder)->Started((*recorder)->Queued(Print(), 0, "a.cc", 1), 2);
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(WTERMSIG(status), SIGKILL);
  ASSERT_OK_AND_ASSIGN(const FlightDump dump, ReadDump(Path()));
  EXPECT_EQ(dump.process, child);
  EXPECT_EQ(dump.life, GroupLife::kMember);
  ASSERT_EQ(dump.calls.size(), 2u);
  EXPECT_EQ(dump.calls[1].state, CallState::kStarted);
}

TEST_F(RecorderTest, WithoutADirectoryOnlyADumpWrites) {
  ASSERT_EQ(setenv("TEST_TMPDIR", directory_.c_str(), 1), 0);
  RecorderOptions options = Options();
  options.directory.clear();
  ASSERT_OK_AND_ASSIGN(const auto recorder, FlightRecorder::Create(options));
  EXPECT_EQ(recorder->directory(), directory_ + "/plinth-comm-run-7");
  Complete(*recorder, 1);
  EXPECT_FALSE(std::filesystem::exists(recorder->directory()));
  for (int time = 0; time < 3; ++time) {
    ASSERT_OK_AND_ASSIGN(const std::string path, recorder->Dump());
    ASSERT_OK_AND_ASSIGN(const FlightDump dump, ReadDump(path));
    EXPECT_EQ(dump.calls.size(), 1u);
  }
  // Nothing but the one file, and for its owner only.
  ASSERT_OK_AND_ASSIGN(const DumpDirectory found, ReadDumpDirectory(recorder->directory()));
  EXPECT_EQ(found.dumps.size(), 1u);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(recorder->directory())) {
    struct stat stats {};
    ASSERT_EQ(stat(entry.path().c_str(), &stats), 0);
    EXPECT_EQ(stats.st_mode & 0777, 0600u);
    ++files;
  }
  EXPECT_EQ(files, 1);
  struct stat stats {};
  ASSERT_EQ(stat(recorder->directory().c_str(), &stats), 0);
  EXPECT_EQ(stats.st_mode & 0777, 0700u);
}

TEST_F(RecorderTest, ADirectoryThatOthersMayWriteToIsRefused) {
  ASSERT_EQ(chmod(directory_.c_str(), 0777), 0);
  EXPECT_THAT(FlightRecorder::Create(Options()).status(),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(directory_)));
}

TEST_F(RecorderTest, NamesOfGroupsBecomeFileNamesThatStayApart) {
  std::vector<std::unique_ptr<FlightRecorder>> recorders;
  for (const char* group : {"dp/0", "dp_0", "../../dp", "dp 0"}) {
    RecorderOptions options = Options();
    options.group = group;
    ASSERT_OK_AND_ASSIGN(auto recorder, FlightRecorder::Create(options));
    recorders.push_back(std::move(recorder));
  }
  ASSERT_OK_AND_ASSIGN(const DumpDirectory found, ReadDumpDirectory(directory_));
  EXPECT_EQ(found.dumps.size(), 4u);
}

// A dump is made while calls go on: what it holds fits together.
TEST_F(RecorderTest, ADumpBesideCallsSkipsWhatIsBeingWritten) {
  ASSERT_EQ(setenv("TEST_TMPDIR", directory_.c_str(), 1), 0);
  RecorderOptions options = Options(4);
  options.directory.clear();
  ASSERT_OK_AND_ASSIGN(const auto recorder, FlightRecorder::Create(options));
  std::atomic<bool> stop = false;
  std::thread caller([&] {
    for (uint64_t sequence = 1; !stop; ++sequence) Complete(*recorder, sequence);
  });
  for (int time = 0; time < 50; ++time) {
    const auto path = recorder->Dump();
    if (!path.ok()) break;
    const auto dump = ReadDump(*path);
    ASSERT_OK(dump.status());
    for (const RecordedCall& call : dump->calls) {
      EXPECT_EQ(call.print, PrintOf(call.print.sequence));
      EXPECT_EQ(call.finished_ns > 0, call.state == CallState::kDone);
    }
    EXPECT_LE(dump->damaged_records, 4);
  }
  stop = true;
  caller.join();
}

TEST_F(RecorderTest, DamageOfAnyByteIsNoticedOrHarmless) {
  {
    ASSERT_OK_AND_ASSIGN(const auto recorder, FlightRecorder::Create(Options(4)));
    for (uint64_t sequence = 1; sequence <= 4; ++sequence) Complete(*recorder, sequence);
    const int blamed[] = {0};
    recorder->Failed(4, FailureKind::kGone, blamed, "rank 0 is gone");
  }
  const std::vector<std::byte> good = BytesOf(Path());
  ASSERT_EQ(static_cast<int64_t>(good.size()), DumpBytes(4));
  ASSERT_OK(ParseDump(good).status());
  for (size_t at = 0; at < good.size(); ++at) {
    std::vector<std::byte> bad = good;
    bad[at] ^= std::byte{static_cast<unsigned char>(1 + RandomBits(1, 0, at) % 255)};
    const auto dump = ParseDump(bad);
    if (at < sizeof(DumpHeader)) {
      EXPECT_FALSE(dump.ok()) << at;
      continue;
    }
    ASSERT_OK(dump.status());
    const bool in_call = static_cast<int64_t>(at) >= kDumpPrologueBytes;
    const bool in_failure =
        static_cast<int64_t>(at) >= kFailureOffset && at < kFailureOffset + sizeof(FailureRecord);
    EXPECT_EQ(dump->damaged_records, in_call || in_failure ? 1 : 0) << at;
    const bool in_ranks = static_cast<int64_t>(at) >= kWorldRanksOffset &&
                          static_cast<int64_t>(at) < kDumpPrologueBytes;
    EXPECT_EQ(dump->world_ranks.empty(), in_ranks) << at;
  }
  for (size_t bytes = 0; bytes < good.size(); bytes += 31) {
    const auto dump = ParseDump(std::span(good).first(bytes));
    EXPECT_EQ(dump.ok(), static_cast<int64_t>(bytes) >= kDumpPrologueBytes);
    if (dump.ok()) EXPECT_TRUE(dump->cut_short);
  }
}

// Numbers that no recorder writes, with checksums that fit.
TEST_F(RecorderTest, NumbersOutsideTheirBoundsAreRefused) {
  { ASSERT_OK_AND_ASSIGN(const auto recorder, FlightRecorder::Create(Options(2))); }
  const std::vector<std::byte> good = BytesOf(Path());
  DumpHeader header;
  std::memcpy(&header, good.data(), sizeof(header));
  const auto with = [&](auto change) {
    DumpHeader changed = header;
    change(changed);
    changed.checksum = BlockChecksum(changed);
    std::vector<std::byte> bytes = good;
    std::memcpy(bytes.data(), &changed, sizeof(changed));
    return ParseDump(bytes).status();
  };
  EXPECT_OK(with([](DumpHeader&) {}));
  EXPECT_OK(with([](DumpHeader& h) { std::memset(h.group, 'x', sizeof(h.group)); }));
  const auto data_loss = absl::StatusCode::kDataLoss;
  EXPECT_THAT(with([](DumpHeader& h) { h.records = -1; }), StatusIs(data_loss));
  EXPECT_THAT(with([](DumpHeader& h) { h.records = kMostRecords + 1; }), StatusIs(data_loss));
  EXPECT_THAT(with([](DumpHeader& h) { h.size = 0; }), StatusIs(data_loss));
  EXPECT_THAT(with([](DumpHeader& h) { h.rank = h.size; }), StatusIs(data_loss));
  EXPECT_THAT(with([](DumpHeader& h) { h.record_bytes = 8; }), StatusIs(data_loss));
  EXPECT_THAT(with([](DumpHeader& h) { h.monotonic_ns = INT64_MIN; }), StatusIs(data_loss));
  EXPECT_THAT(with([](DumpHeader& h) { h.version = 2; }),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("version 2")));
}

TEST_F(RecorderTest, WhatIsNoDumpIsListedWithItsReason) {
  { ASSERT_OK_AND_ASSIGN(const auto recorder, FlightRecorder::Create(Options())); }
  std::ofstream(directory_ + "/empty.flight").flush();
  std::ofstream(directory_ + "/text.flight") << "these are no bytes of a dump";
  std::ofstream(directory_ + "/README") << "not looked at";
  ASSERT_EQ(mkfifo((directory_ + "/pipe.flight").c_str(), 0600), 0);
  ASSERT_OK_AND_ASSIGN(const DumpDirectory found, ReadDumpDirectory(directory_));
  EXPECT_EQ(found.dumps.size(), 1u);
  ASSERT_EQ(found.unreadable.size(), 3u);
  EXPECT_EQ(found.unreadable[1].reason, "not a regular file");
  EXPECT_THAT(ReadDumpDirectory(directory_ + "/nowhere").status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("nowhere")));
}

}  // namespace
}  // namespace plinth::comm
