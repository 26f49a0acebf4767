// What is left when a save stops half-way: by SIGKILL, by a dead or a full disk.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/storage/checkpoint/catalog.h"
#include "plinth/storage/checkpoint/layout.h"
#include "plinth/storage/checkpoint/reader.h"
#include "plinth/storage/checkpoint/test_checkpoint.h"
#include "plinth/storage/io/directory.h"
#include "plinth/storage/io/fault_injection.h"

namespace plinth::storage {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::HasSubstr;

// Returns the step of a checkpoint that is newest, complete, and holds its own values.
int64_t GoodStep(const std::string& run) {
  const auto found = FindLatest(run, /*verify_checksums=*/true);
  EXPECT_OK(found.status());
  if (!found.ok()) return -1;
  const auto reader = CheckpointReader::Open(found->dir);
  EXPECT_OK(reader.status());
  EXPECT_OK(CheckTestCheckpoint(**reader));
  for (const std::string& skipped : found->skipped) {
    EXPECT_THAT(skipped, HasSubstr("not committed")) << "a committed one was incomplete";
  }
  return found->step;
}

TEST(Crash, KilledAtRandomMomentsAlwaysLeavesACompleteCheckpoint) {
  const std::string run = FreshRunDir();
  constexpr int64_t kRows = 64;
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_OK(SaveTestCheckpoint(run, 0, kRows));
  const auto one_save = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - begin);
  std::mt19937 random(11);
  int64_t step = 0;
  int uncommitted = 0;
  for (int kill = 0; kill < 20; ++kill) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int64_t next = step + 1;; ++next) {
        if (!SaveTestCheckpoint(run, next, kRows).ok() || !KeepLast(run, 2).ok()) ::_exit(1);
      }
    }
    // Between at once and about three saves later, however slow this disk is.
    std::this_thread::sleep_for(one_save * (random() % 1000) / 300);
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int how = 0;
    ASSERT_EQ(::waitpid(child, &how, 0), child);
    ASSERT_TRUE(WIFSIGNALED(how)) << "the child stopped by itself: a save failed";
    const int64_t now = GoodStep(run);
    EXPECT_GE(now, step) << "a committed checkpoint was lost";
    step = now;
    ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names, ListDirectory(run + "/checkpoints"));
    for (const std::string& name : names) {
      uncommitted += absl::StartsWith(name, kTemporaryPrefix);
    }
  }
  EXPECT_GT(step, 0) << "no child came to save anything";
  EXPECT_GT(uncommitted, 0) << "no kill hit a save: the test shows nothing";
}

TEST(Crash, DiskThatDiesAtAnyCallLeavesTheOldOrTheNewCheckpoint) {
  const std::string run = FreshRunDir();
  ASSERT_OK(SaveTestCheckpoint(run, 1));
  int64_t failures = 0;
  for (int64_t fail_at = 0;; ++fail_at) {
    FaultySyscalls faulty;
    faulty.fail_at = fail_at;
    const absl::Status status = SaveTestCheckpoint(run, 2, 4, faulty);
    const int64_t step = GoodStep(run);
    if (status.ok()) {
      EXPECT_EQ(step, 2);
      break;
    }
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss, HasSubstr(run)));
    ++failures;
    ASSERT_OK(RemoveTree(run + "/checkpoints/step-00000002"));
  }
  EXPECT_GT(failures, 20) << "4 files and a part, each created, written, fsynced and closed";
}

TEST(Crash, ReplacingAStepUnderFaultsAlwaysLeavesOne) {
  const std::string run = FreshRunDir();
  ASSERT_OK(SaveTestCheckpoint(run, 1));
  bool done = false;
  for (int64_t fail_at = 0; !done; ++fail_at) {
    FaultySyscalls faulty;
    faulty.fail_at = fail_at;
    done = SaveTestCheckpoint(run, 1, 4, faulty).ok();
    ASSERT_EQ(GoodStep(run), 1);
  }
}

TEST(Crash, RetentionUnderFaultsNeverLosesTheNewest) {
  const std::string start = FreshRunDir() + "/start", run = start + "-copy";
  for (const int step : {1, 2, 3}) ASSERT_OK(SaveTestCheckpoint(start, step));
  bool done = false;
  for (int64_t fail_at = 0; !done; ++fail_at) {
    std::filesystem::remove_all(run);
    std::filesystem::copy(start, run, std::filesystem::copy_options::recursive);
    FaultySyscalls faulty;
    faulty.fail_at = fail_at;
    done = KeepLast(run, 1, faulty).ok();
    ASSERT_EQ(GoodStep(run), 3);
    ASSERT_OK(SaveTestCheckpoint(run, 4)) << "remains do not disturb the next save";
  }
}

TEST(Crash, FullDiskAtAnyByteIsReportedAndKeepsTheOldCheckpoint) {
  const std::string run = FreshRunDir();
  ASSERT_OK(SaveTestCheckpoint(run, 1));
  FaultySyscalls endless;
  endless.capacity = 1'000'000;
  ASSERT_OK(SaveTestCheckpoint(run, 2, 4, endless));
  const int64_t needed = 1'000'000 - endless.capacity;
  ASSERT_OK(RemoveTree(run + "/checkpoints/step-00000002"));
  for (int64_t capacity = 0; capacity < needed; capacity += 389) {
    FaultySyscalls full;
    full.capacity = capacity;
    ASSERT_THAT(SaveTestCheckpoint(run, 2, 4, full),
                StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("disk full: wrote ")));
    ASSERT_EQ(GoodStep(run), 1);
  }
}

TEST(Crash, ManifestIsLastAndEverythingIsDurableBeforeTheRename) {
  const std::string run = FreshRunDir();
  FaultySyscalls recorder;
  ASSERT_OK(SaveTestCheckpoint(run, 1, 4, recorder));
  const std::string dir = run + "/checkpoints", tmp = dir + "/.tmp-step-00000001";
  const auto at = [&](const std::string& line) {
    const auto found = std::find(recorder.log.begin(), recorder.log.end(), line);
    EXPECT_NE(found, recorder.log.end()) << line;
    return found - recorder.log.begin();
  };
  const auto manifest = at("open " + tmp + "/manifest.pb");
  for (const std::string file :
       {"model-00000.safetensors", "optim-00000.safetensors", "tokenizer.json"}) {
    EXPECT_LT(at("fsync " + tmp + "/" + file), manifest);
  }
  const auto rename = at("rename " + tmp + " " + dir + "/step-00000001");
  EXPECT_LT(at("fsync " + tmp + "/manifest.pb"), at("fsync " + tmp));
  EXPECT_LT(at("fsync " + tmp), rename);
  const auto last_sync = std::find(recorder.log.rbegin(), recorder.log.rend(), "fsync " + dir);
  EXPECT_GT(recorder.log.rend() - last_sync - 1, rename) << "the parent, after the rename";
}

}  // namespace
}  // namespace plinth::storage
