// The program from outside: what it prints, and how it fails.
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/infer/load/test_checkpoint.h"

namespace plinth::infer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Result {
  int exit_code = -1;
  std::string output;
};

// `redirect` chooses what is read: "2>/dev/null" or "2>&1 >/dev/null".
Result Generate(const std::string& arguments, const std::string& redirect) {
  Result result;
  const std::string command = "infer/generate " + arguments + " " + redirect;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  char buffer[256];
  while (fgets(buffer, sizeof(buffer), pipe) != nullptr) result.output += buffer;
  const int status = pclose(pipe);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  return result;
}

class GenerateTest : public ::testing::Test {
 protected:
  GenerateTest() {
    std::filesystem::remove_all(run_);
    CHECK_OK(WriteTestCheckpoint(run_, {}));
  }
  const std::string run_ = ::testing::TempDir() + "/generate_run";
  const std::string flags_ = "--checkpoint=" + run_ + " --set=hardware.threads=1 ";
};

TEST_F(GenerateTest, StdoutHoldsThePromptAndTheReplyOfASeed) {
  const std::string flags = flags_ + "--prompt='the cat' --max_tokens=25 ";
  const Result first = Generate(flags + "--seed=3", "2>/dev/null");
  EXPECT_EQ(first.exit_code, 0);
  EXPECT_THAT(first.output, StartsWith("the cat"));
  EXPECT_GT(first.output.size(), 20u);
  EXPECT_EQ(Generate(flags + "--seed=3", "2>/dev/null").output, first.output);
  EXPECT_NE(Generate(flags + "--seed=4", "2>/dev/null").output, first.output);
  const Result sim = Generate(flags + "--seed=3 --set hardware.device=SIM", "2>/dev/null");
  EXPECT_EQ(sim.output, first.output);
}

TEST_F(GenerateTest, UserErrorsAreOneLineAndANonZeroExit) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "serve.checkpoint"},
      {"--checkpoint=/no/such/run", "/no/such/run"},
      {flags_ + "--top_p=7", "top_p must be in (0, 1], got 7"},
      {flags_ + "--prompt=\"$(printf 'x%.0s' $(seq 200))\"", "at most 63 fit"},
      {flags_ + "--set=serve.nothing=1", "nothing"},
      {flags_ + "--prompt=x --max_tokens=-1", "max_tokens"},
      {flags_ + "a_prompt_without_its_flag", "unexpected argument"},
  };
  for (const auto& [arguments, message] : cases) {
    SCOPED_TRACE(arguments);
    const Result result = Generate(arguments, "2>&1 >/dev/null");
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.output, AllOf(HasSubstr("generate: "), HasSubstr(message)));
    EXPECT_EQ(Generate(arguments, "2>/dev/null").output, "") << "nothing on stdout";
  }
}

}  // namespace
}  // namespace plinth::infer
