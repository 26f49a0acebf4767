#include "plinth/config/loader/command_line.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::config {
namespace {

using ::testing::ElementsAre;

struct Result {
  absl::StatusOr<ConfigFlags> flags;
  std::vector<std::string> rest;
};

Result Take(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(arguments.size());
  Result result{TakeConfigFlags(argc, argv.data()), {}};
  for (int i = 0; i < argc; ++i) result.rest.push_back(argv[i]);
  return result;
}

TEST(CommandLine, TakesItsFlagsAndLeavesTheRest) {
  const Result result = Take(
      {"p", "--set", "a=1", "--verbose", "--config=x", "-set=b=c=d", "--", "--set", "not=mine"});
  ASSERT_OK(result.flags);
  EXPECT_EQ(result.flags->config, "x");
  EXPECT_THAT(result.flags->settings, ElementsAre("a=1", "b=c=d"));
  EXPECT_THAT(result.rest, ElementsAre("p", "--verbose", "--", "--set", "not=mine"));
  EXPECT_THAT(ToArguments(*result.flags), ElementsAre("--config=x", "--set=a=1", "--set=b=c=d"));
}

TEST(CommandLine, RefusesHalfFlags) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(Take({"p", "--set"}).flags, plinth::testing::StatusIs(kInvalid));
  EXPECT_THAT(Take({"p", "--config=a", "--config=b"}).flags, plinth::testing::StatusIs(kInvalid));
  // A longer flag with the same beginning is somebody else's.
  EXPECT_THAT(Take({"p", "--settle=1"}).rest, ElementsAre("p", "--settle=1"));
}

}  // namespace
}  // namespace plinth::config
