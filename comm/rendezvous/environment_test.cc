#include "plinth/comm/rendezvous/environment.h"

#include <map>
#include <string>

#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Variables = std::map<std::string, std::string>;

absl::StatusOr<CommOptions> Parse(const Variables& variables) {
  return OptionsFromEnvironment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Variables Good() {
  return {{"RANK", "5"},
          {"WORLD_SIZE", "8"},
          {"LOCAL_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "4"},
          {"MASTER_ADDR", "node0"},
          {"MASTER_PORT", "29500"}};
}

TEST(Environment, NothingSetIsAWorldOfOne) {
  ASSERT_OK_AND_ASSIGN(const CommOptions options, Parse({}));
  EXPECT_EQ(options.size, 1);
  EXPECT_EQ(options.rank, 0);
}

TEST(Environment, ReadsAllVariables) {
  Variables variables = Good();
  variables["PLINTH_TRANSPORT"] = "tcp";
  variables["PLINTH_COMM_TIMEOUT"] = "5m";
  variables["TORCHELASTIC_RUN_ID"] = "run7";
  ASSERT_OK_AND_ASSIGN(CommOptions options, Parse(variables));
  EXPECT_EQ(options.rank, 5);
  EXPECT_EQ(options.size, 8);
  EXPECT_EQ(options.local_rank, 1);
  EXPECT_EQ(options.local_size, 4);
  EXPECT_EQ(options.store_host, "node0");
  EXPECT_EQ(options.store_port, 29500);
  EXPECT_EQ(options.transport, TransportKind::kTcp);
  EXPECT_EQ(options.timeout, absl::Minutes(5));
  EXPECT_EQ(options.run_id, "run7");

  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  ASSERT_OK_AND_ASSIGN(options, Parse(variables));
  EXPECT_EQ(options.store_port, 29501);
}

TEST(Environment, EveryMissingVariableIsNamedInOneLine) {
  for (const auto& [name, value] : Good()) {
    Variables variables = Good();
    variables.erase(name);
    EXPECT_THAT(Parse(variables),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(name + " not set"), Not(HasSubstr("\n")))));
  }
  EXPECT_THAT(Parse({{"RANK", "0"}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("MASTER_ADDR, MASTER_PORT not set, though RANK is")));
}

TEST(Environment, RefusesBadValuesAndContradictions) {
  const struct {
    const char* name;
    const char* value;
    const char* message;
  } kCases[] = {
      {"RANK", "two", "RANK=\"two\" is not a whole number"},
      {"RANK", "-1", "RANK=\"-1\""},
      {"RANK", "8", "RANK=8 is not below WORLD_SIZE=8"},
      {"WORLD_SIZE", "0", "WORLD_SIZE=\"0\""},
      {"WORLD_SIZE", "99999999999", "WORLD_SIZE=\"99999999999\""},
      {"LOCAL_RANK", "4", "LOCAL_RANK=4 is not below LOCAL_WORLD_SIZE=4"},
      {"LOCAL_WORLD_SIZE", "9", "LOCAL_WORLD_SIZE=9 is more than WORLD_SIZE=8"},
      {"LOCAL_WORLD_SIZE", "8", "LOCAL_RANK=1 differs from RANK=5"},
      {"MASTER_PORT", "70000", "MASTER_PORT=\"70000\""},
      {"PLINTH_TRANSPORT", "ib", "none of auto, shm, tcp"},
      {"PLINTH_COMM_TIMEOUT", "soon", "PLINTH_COMM_TIMEOUT=\"soon\""},
      {"PLINTH_COMM_TIMEOUT", "0s", "PLINTH_COMM_TIMEOUT=\"0s\""},
  };
  for (const auto& c : kCases) {
    Variables variables = Good();
    variables[c.name] = c.value;
    EXPECT_THAT(Parse(variables),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)));
  }
}

}  // namespace
}  // namespace plinth::comm
