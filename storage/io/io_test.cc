#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/storage/io/checksum.h"
#include "plinth/storage/io/directory.h"
#include "plinth/storage/io/directory_lock.h"
#include "plinth/storage/io/fault_injection.h"
#include "plinth/storage/io/output_file.h"
#include "plinth/storage/io/read_file.h"
#include "plinth/storage/io/syscalls.h"

namespace plinth::storage {
namespace {

using ::plinth::testing::IsOkAndHolds;
using ::plinth::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class IoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = ::testing::TempDir() + "/io_" +
           ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
  }
  std::string Path(const std::string& name) const { return dir_ + "/" + name; }
  void Put(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
  }
  std::string dir_;
};

TEST_F(IoTest, ReadsAndMapsTheSameBytes) {
  const std::string text("a\0b\n", 4);
  Put("f", text);
  Put("empty", "");
  EXPECT_THAT(ReadFile(Path("f")), IsOkAndHolds(text));
  ASSERT_OK_AND_ASSIGN(MappedFile mapped, MappedFile::Open(Path("f")));
  const MappedFile moved = std::move(mapped);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(moved.bytes().data()), moved.bytes().size()),
            text);
  EXPECT_TRUE(mapped.bytes().empty());  // NOLINT: moved-from is empty by contract
  ASSERT_OK_AND_ASSIGN(const MappedFile empty, MappedFile::Open(Path("empty")));
  EXPECT_TRUE(empty.bytes().empty());
  EXPECT_THAT(ReadFile(Path("empty")), IsOkAndHolds(""));
}

TEST_F(IoTest, ReadErrorsNamePathAndCause) {
  EXPECT_THAT(ReadFile(Path("none")),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("/none: open for reading"), HasSubstr("No such file"))));
  EXPECT_THAT(MappedFile::Open(Path("none")), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(ReadFile(dir_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a directory")));
  ASSERT_EQ(::mkfifo(Path("fifo").c_str(), 0600), 0);
  EXPECT_THAT(MappedFile::Open(Path("fifo")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a regular file")));
  Put("big", "12345");
  EXPECT_THAT(ReadFile(Path("big"), 4),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("holds 5 bytes, at most 4 are accepted")));
}

TEST_F(IoTest, OutputFileKeepsOrderSizeAndChecksumAcrossBufferEdges) {
  std::string all;
  ASSERT_OK_AND_ASSIGN(OutputFile file, OutputFile::Create(Path("f")));
  for (const size_t n : {0, 1, 256 * 1024 - 1, 1, 256 * 1024, 700'000, 3}) {
    const std::string piece(n, static_cast<char>('a' + all.size() % 23));
    all += piece;
    ASSERT_OK(file.Append(piece));
  }
  ASSERT_OK(file.Finish());
  EXPECT_EQ(file.size(), static_cast<int64_t>(all.size()));
  EXPECT_EQ(file.checksum(), Checksum(all));
  EXPECT_THAT(ReadFile(Path("f")), IsOkAndHolds(all));
}

TEST_F(IoTest, DiskFullSaysHowFarItCame) {
  FaultySyscalls full;
  full.capacity = 300'000;
  ASSERT_OK_AND_ASSIGN(OutputFile file, OutputFile::Create(Path("f"), full));
  const absl::Status status = file.Append(std::string(500'000, 'x'));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               "disk full: wrote 300000 of 500000 bytes to " + Path("f")));
  EXPECT_EQ(file.Append("more"), status) << "the first error sticks";
  EXPECT_EQ(file.Finish(), status);
}

TEST_F(IoTest, DiskFullFromTheKernel) {
  ASSERT_OK_AND_ASSIGN(OutputFile file, OutputFile::Create("/dev/full"));
  ASSERT_OK(file.Append("buffered"));
  EXPECT_THAT(file.Finish(), StatusIs(absl::StatusCode::kResourceExhausted,
                                      "disk full: wrote 0 of 8 bytes to /dev/full"));
}

TEST_F(IoTest, FileSizeLimitFromTheKernelIsAnErrorAndKeepsTheOldFile) {
  ASSERT_OK(WriteFileAtomically(Path("f"), "old"));
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{100'000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = WriteFileAtomically(Path("f"), std::string(400'000, 'n'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               AllOf(HasSubstr("wrote 100000 of 400000 bytes"),
                                     HasSubstr("File too large"))));
  EXPECT_THAT(ReadFile(Path("f")), IsOkAndHolds("old"));
  EXPECT_THAT(ListDirectory(dir_), IsOkAndHolds(ElementsAre("f")));
}

TEST_F(IoTest, AtomicWriteUnderEveryFaultIsOldOrNew) {
  for (int64_t fail_at = 0;; ++fail_at) {
    ASSERT_OK(WriteFileAtomically(Path("f"), "old"));
    FaultySyscalls faulty;
    faulty.fail_at = fail_at;
    const absl::Status status = WriteFileAtomically(Path("f"), "new", faulty);
    ASSERT_OK_AND_ASSIGN(const std::string now, ReadFile(Path("f")));
    if (status.ok()) {
      EXPECT_EQ(now, "new");
      EXPECT_GT(fail_at, 5) << "open, write, fsync, close, rename, fsync directory";
      break;
    }
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss, HasSubstr(dir_)));
    EXPECT_TRUE(now == "old" || now == "new") << now;
  }
}

TEST_F(IoTest, AtomicWriteSyncsFileBeforeRenameAndDirectoryAfter) {
  FaultySyscalls recorder;
  ASSERT_OK(WriteFileAtomically(Path("f"), "x", recorder));
  const std::string temporary = Path(".tmp-f");
  EXPECT_THAT(recorder.log,
              ElementsAre("open " + temporary, "write " + temporary, "fsync " + temporary,
                          "close " + temporary, "rename " + temporary + " " + Path("f"),
                          "open " + dir_, "fsync " + dir_, "close " + dir_));
}

TEST_F(IoTest, CommitDirectoryPublishesOrReplacesWhole) {
  const std::string from = Path(".tmp-d"), to = Path("d");
  for (const std::string text : {"one", "two"}) {
    ASSERT_OK(MakeDirectories(from + "/sub"));
    ASSERT_OK(WriteFileAtomically(from + "/sub/f", text));
    ASSERT_OK(CommitDirectory(from, to));
    EXPECT_THAT(ReadFile(to + "/sub/f"), IsOkAndHolds(text));
    EXPECT_THAT(ListDirectory(dir_), IsOkAndHolds(ElementsAre("d")));
  }
}

TEST_F(IoTest, RemoveTreeDoesNotFollowLinks) {
  ASSERT_OK(MakeDirectories(Path("keep")));
  Put("keep/f", "x");
  ASSERT_OK(MakeDirectories(Path("gone/deeper")));
  std::filesystem::create_directory_symlink(Path("keep"), Path("gone/link"));
  ASSERT_OK(RemoveTree(Path("gone")));
  ASSERT_OK(RemoveTree(Path("gone"))) << "absent is fine";
  EXPECT_THAT(ListDirectory(dir_), IsOkAndHolds(ElementsAre("keep")));
  EXPECT_THAT(ReadFile(Path("keep/f")), IsOkAndHolds("x"));
}

TEST_F(IoTest, MakeDirectoriesOverAFileFails) {
  Put("f", "x");
  EXPECT_THAT(MakeDirectories(Path("f/d")),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("/f: create directory")));
}

TEST(ChecksumTest, KnownValueAndStreaming) {
  // XXH3-64 of the empty input with seed 0, from the algorithm's specification.
  EXPECT_EQ(ChecksumText(Checksum(std::string_view())), "2d06800538d394c2");
  StreamingChecksum streaming;
  std::string all;
  for (int i = 0; i < 300; ++i) {
    const std::string piece(i, static_cast<char>(i));
    streaming.Update(std::as_bytes(std::span(piece)));
    all += piece;
    ASSERT_EQ(streaming.Value(), Checksum(all)) << i;
  }
}

TEST_F(IoTest, ADirectoryHasOneLockHolder) {
  const std::string dir = Path("locked");
  ASSERT_OK(MakeDirectories(dir));
  {
    ASSERT_OK_AND_ASSIGN(const DirectoryLock lock, DirectoryLock::Acquire(dir));
    EXPECT_THAT(DirectoryLock::Acquire(dir).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(dir)));
  }
  EXPECT_OK(DirectoryLock::Acquire(dir).status());
  EXPECT_THAT(DirectoryLock::Acquire(Path("absent")).status(),
              StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace plinth::storage
