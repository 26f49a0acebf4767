// The program from outside: user errors are one line, said before any rank starts.
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plinth::cluster {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kConfig[] = "--config=config/presets/tiny_cpu.textproto ";

struct Result {
  int exit_code = -1;
  std::string output;  // both streams
};

Result Launch(const std::string& arguments) {
  Result result;
  FILE* pipe = popen(("cluster/launch/launch " + arguments + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return result;
  char buffer[256];
  while (fgets(buffer, sizeof(buffer), pipe) != nullptr) result.output += buffer;
  const int status = pclose(pipe);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  return result;
}

TEST(LaunchTest, UserErrorsAreOneLineForAllRanks) {
  // None of these programs exists: a started rank would be another error.
  const std::string trainer = " --ranks=2 -- /none/train";
  const std::string config(kConfig);
  const std::pair<std::string, std::string> cases[] = {
      {config + "--set train.no_such_field=1" + trainer, "no_such_field"},
      {config + "--set train.micro_batch=-1" + trainer, "train.micro_batch"},
      {config + "--set train.global_batch=7" + trainer, "train.global_batch"},
      {config + "--set train.run_dir=" + trainer, "train.run_dir"},
      {"--config=/none/config" + trainer, "/none/config"},
      {"--set nothing.at_all=1" + trainer, "nothing"},
      {config + "--set cluster.max_restarts=many -- /none/other", "max_restarts"},
      {"--ranks=-1 -- /none/other", "ranks must be 1 to 1024, is -1"},
      {"--on=mars -- /bin/true", "--on=mars"},
      {"--config", "--config needs a value"},
      {"", "no program to run"},
  };
  for (const auto& [arguments, message] : cases) {
    SCOPED_TRACE(arguments);
    const Result result = Launch(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.output, StartsWith("launch: "));
    EXPECT_THAT(result.output, HasSubstr(message));
    EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1) << result.output;
  }
}

// What a field means is the concern of the program that uses it.
TEST(LaunchTest, OtherProgramsTakeAnyConfigThatCanBeRead) {
  const std::string setting = "--set train.micro_batch=-1";
  const Result result = Launch(kConfig + setting + " --ranks=2 -- /bin/sh -c 'echo $1'");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("[rank 0] --set=train.micro_batch=-1\n"));
  EXPECT_THAT(result.output, HasSubstr("[rank 1] --set=train.micro_batch=-1\n"));
  EXPECT_EQ(Launch("-- /bin/sh -c 'echo $0' --help").output, "--help\n");
}

}  // namespace
}  // namespace plinth::cluster
