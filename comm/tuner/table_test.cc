#include "plinth/comm/tuner/table.h"

#include <string>

#include "gtest/gtest.h"
#include "plinth/comm/tuner/cost.h"
#include "plinth/hardware/base/rng.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::HasSubstr;

TEST(Table, DefaultsAreUsable) {
  for (const char* transport : {"mem", "shm", "tcp", "mpi", "udp"}) {
    const CostTable table = DefaultTable(transport);
    EXPECT_EQ(table.transport, transport);
    ASSERT_OK_AND_ASSIGN(const CostTable parsed, ParseTable(FormatTable(table)));
    EXPECT_EQ(parsed, table);
  }
}

// Numbers of every size come back to the bit.
TEST(Table, FormatAndParseAreInverse) {
  for (uint64_t i = 0; i < 200; ++i) {
    const auto number = [i](uint64_t field) {
      return RandomUniform(i, field, 0) * (field % 2 == 0 ? 1e-9 : 1e12) + 1e-300;
    };
    const CostTable table{"shm",
                          {.local = {number(0), number(1)},
                           .remote = {number(2), number(3)},
                           .direct = {number(4), number(5)},
                           .message_us = number(6),
                           .reduce_mb_per_s = number(7)}};
    ASSERT_OK_AND_ASSIGN(const CostTable parsed, ParseTable(FormatTable(table)));
    ASSERT_EQ(parsed, table) << FormatTable(table);
  }
}

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(Table, CommentsBlankLinesOrderAndLineEndsAreFree) {
  const CostTable table = DefaultTable("tcp");
  std::string text = "# measured by hand\r\n\n" + FormatTable(table) + "   \n# end";
  ASSERT_OK_AND_ASSIGN(const CostTable parsed, ParseTable(text));
  EXPECT_EQ(parsed, table);
  text = Replaced(FormatTable(table), "transport tcp\n", "") + "  transport\t tcp \r\n";
  ASSERT_OK_AND_ASSIGN(const CostTable moved, ParseTable(text));
  EXPECT_EQ(moved, table);
}

TEST(Table, SaysWhatIsWrongAndWhere) {
  const std::string good = FormatTable(DefaultTable("tcp"));
  const auto refused = [](const std::string& text, const char* message) {
    EXPECT_THAT(ParseTable(text), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)))
        << text;
  };
  refused("", "no line \"plinth comm table 1\"");
  refused("# only this", "no line \"plinth comm table 1\"");
  refused("plinth comm table 2\n", "line 1: want \"plinth comm table 1\", got");
  refused("plinth comm table 1\n", "no line for transport");
  refused(Replaced(good, "message_us 5\n", ""), "no line for message_us");
  refused(good + "message_us 5\n", "line 11: message_us is given twice");
  refused(good + "transport shm\n", "line 11: transport is given twice");
  refused(good + "speed 3\n", "line 11: unknown name \"speed\"");
  refused(good + "message_us\n", "line 11: want a name and a value, got \"message_us\"");
  refused(good + "message_us 1 2\n", "line 11: want a name and a value");
  refused(Replaced(good, "message_us 5", "message_us 5us"), "from 0 on, got \"5us\"");
  refused(Replaced(good, "message_us 5", "message_us -1"), "from 0 on, got \"-1\"");
  refused(Replaced(good, "message_us 5", "message_us inf"), "from 0 on, got \"inf\"");
  refused(Replaced(good, "message_us 5", "message_us nan"), "from 0 on, got \"nan\"");
  refused(Replaced(good, "local_mb_per_s 2500", "local_mb_per_s 0"), "positive number, got \"0\"");
  refused(Replaced(good, "transport tcp", "transport TCP!"), "\"TCP!\" names no transport");
}

// Whatever is done to a table, the parser refuses it or gives values that a table may have.
TEST(Table, AnyBytesAreFitToParse) {
  const std::string good = FormatTable(DefaultTable("shm"));
  int accepted = 0;
  for (uint64_t i = 0; i < 20000; ++i) {
    std::string text = good;
    const int changes = 1 + static_cast<int>(RandomBits(i, 0, 0) % 4);
    for (int c = 0; c < changes && !text.empty(); ++c) {
      const size_t at = RandomBits(i, 1, c) % text.size();
      switch (RandomBits(i, 2, c) % 4) {
        case 0:
          text[at] = static_cast<char>(RandomBits(i, 3, c));
          break;
        case 1:
          text.erase(at, 1 + RandomBits(i, 3, c) % 8);
          break;
        case 2:
          text.insert(at, text, RandomBits(i, 3, c) % text.size(), 12);
          break;
        default:
          text.resize(at + 1);
          break;
      }
    }
    const absl::StatusOr<CostTable> table = ParseTable(text);
    if (!table.ok()) continue;
    ++accepted;
    ASSERT_GT(table->model.local.mb_per_s, 0);
    ASSERT_GE(table->model.message_us, 0);
    ASSERT_OK_AND_ASSIGN(const CostTable again, ParseTable(FormatTable(*table)));
    ASSERT_EQ(again, *table);
  }
  EXPECT_GT(accepted, 100) << "some changes only touch digits";
}

}  // namespace
}  // namespace plinth::comm
