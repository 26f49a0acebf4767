// Runs the ckpt program as a user does.
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/storage/checkpoint/test_checkpoint.h"
#include "plinth/storage/io/read_file.h"

namespace plinth::storage {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct Result {
  int exit_code;
  std::string out, err;
};

class CkptTest : public ::testing::Test {
 protected:
  void SetUp() override {
    run_ = FreshRunDir();
    ASSERT_OK(SaveTestCheckpoint(run_, 8));
    ASSERT_OK(SaveTestCheckpoint(run_, 40));
    dir_ = run_ + "/checkpoints/step-00000040";
  }
  Result Ckpt(const std::string& arguments) {
    const std::string command =
        "./storage/ckpt " + arguments + " >" + run_ + "/out 2>" + run_ + "/err";
    const int status = std::system(command.c_str());
    return {WEXITSTATUS(status), *ReadFile(run_ + "/out"), *ReadFile(run_ + "/err")};
  }
  std::string run_, dir_;
};

TEST_F(CkptTest, InspectShowsACheckpointOrTheNewestOfARun) {
  const Result one = Ckpt("inspect " + dir_);
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, AllOf(HasSubstr("step        40"), HasSubstr("tokens      20480"),
                             HasSubstr("sequence length 64"), HasSubstr("model-00000.safetensors"),
                             HasSubstr("w       F32          1  [4,256]")));
  EXPECT_THAT(one.err, IsEmpty());
  EXPECT_EQ(Ckpt("inspect " + run_).out, one.out);
}

TEST_F(CkptTest, JsonIsOneObject) {
  const Result inspect = Ckpt("--json inspect " + dir_);
  EXPECT_EQ(inspect.exit_code, 0) << inspect.err;
  EXPECT_THAT(inspect.out, AllOf(StartsWith("{\"dir\":\""), HasSubstr("\"step\":\"40\""),
                                 HasSubstr("\"dtype\":\"F32\",\"shape\":[\"4\",\"256\"]")));
  const Result verify = Ckpt("verify --json " + dir_);
  EXPECT_EQ(verify.exit_code, 0) << verify.err;
  EXPECT_EQ(verify.out, "{\"dir\":\"" + dir_ + "\",\"ok\":true,\"damage\":[]}\n");
}

TEST_F(CkptTest, VerifyNamesTheDamagedShardAndTensor) {
  EXPECT_EQ(Ckpt("verify " + dir_).exit_code, 0);
  const std::string shard = dir_ + "/optim-00000.safetensors";
  std::fstream(shard, std::ios::in | std::ios::out).seekp(-1, std::ios::end).put('x');
  const Result result = Ckpt("verify " + run_);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, AllOf(HasSubstr("damaged"), HasSubstr("optim-00000.safetensors"),
                                HasSubstr("tensor \"w.m\"")));
  EXPECT_EQ(Ckpt("verify --json " + dir_).exit_code, 1);
}

TEST_F(CkptTest, UserErrorsAreOneLine) {
  std::filesystem::remove(dir_ + "/model-00000.safetensors");
  std::filesystem::create_directory(run_ + "/other");
  for (const auto& [arguments, code, message] :
       {std::tuple("inspect " + dir_, 1, "model-00000.safetensors: open for reading"),
        std::tuple("verify " + dir_, 1, "model-00000.safetensors: open for reading"),
        std::tuple("inspect " + run_ + "/none", 1, "/none: open directory: No such file"),
        std::tuple("inspect " + run_ + "/out", 1, "Not a directory"),
        std::tuple("inspect " + run_ + "/other", 1,
                   "/other: is neither a checkpoint (it has no manifest.pb) nor a run"),
        std::tuple(std::string("inspect"), 2, "expected"),
        std::tuple("frobnicate " + dir_, 2, "expected")}) {
    const Result result = Ckpt(arguments);
    EXPECT_EQ(result.exit_code, code) << arguments;
    EXPECT_THAT(result.err, AllOf(StartsWith("ckpt: "), HasSubstr(message)));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.out, IsEmpty());
  }
}

TEST_F(CkptTest, Help) { EXPECT_THAT(Ckpt("--help").out, HasSubstr("ckpt verify PATH")); }

}  // namespace
}  // namespace plinth::storage
