#include "plinth/comm/rendezvous/node_list.h"

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::plinth::testing::IsOkAndHolds;
using ::plinth::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(NodeList, ExpandsWhatSlurmWrites) {
  EXPECT_THAT(ExpandNodeList("localhost"), IsOkAndHolds(ElementsAre("localhost")));
  EXPECT_THAT(ExpandNodeList("n[1-3,07-09],gpu5"),
              IsOkAndHolds(ElementsAre("n1", "n2", "n3", "n07", "n08", "n09", "gpu5")));
  EXPECT_THAT(ExpandNodeList("n[9-11]"), IsOkAndHolds(ElementsAre("n9", "n10", "n11")));
  EXPECT_THAT(ExpandNodeList("n[098-101]"),
              IsOkAndHolds(ElementsAre("n098", "n099", "n100", "n101")));
  EXPECT_THAT(ExpandNodeList("r[1-2]n[3,5].x-y"),
              IsOkAndHolds(ElementsAre("r1n3.x-y", "r1n5.x-y", "r2n3.x-y", "r2n5.x-y")));
  EXPECT_THAT(ExpandNodeList("[1-2]"), IsOkAndHolds(ElementsAre("1", "2")));
  EXPECT_THAT(ExpandNodeList("n[1-65536]"), IsOkAndHolds(SizeIs(65536)));
}

TEST(NodeList, RefusesTheRestAndTellsWhere) {
  const struct {
    const char* text;
    const char* message;
  } kCases[] = {
      {"", "want a name at character 1"},
      {",", "want a name at character 1"},
      {"a,", "want a name at character 3"},
      {"a,,b", "want a name at character 3"},
      {"n[", "want a number"},
      {"n[]", "want a number"},
      {"n[1", "want a comma or a closing bracket at character 4"},
      {"n[1-", "want a number"},
      {"n[1,]", "want a number"},
      {"n[3-1]", "runs backwards"},
      {"n[x]", "want a number"},
      {"n[1]]", "want a comma or the end at character 5"},
      {"n 1", "want a comma or the end at character 2"},
      {"n[0-65536]", "more than 65536 nodes"},
      {"n[0-999][0-999]", "more than 65536 nodes"},
      {"n[1-65000],m[1-65000]", "more than 65536 nodes"},
      {"n[1234567890]", "1 to 9 digits"},
  };
  for (const auto& c : kCases) {
    EXPECT_THAT(ExpandNodeList(c.text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)))
        << c.text;
  }
}

TEST(TaskCounts, Expand) {
  EXPECT_THAT(ExpandTaskCounts("4"), IsOkAndHolds(ElementsAre(4)));
  EXPECT_THAT(ExpandTaskCounts("4(x2),3"), IsOkAndHolds(ElementsAre(4, 4, 3)));
  EXPECT_THAT(ExpandTaskCounts("1,2(x1),1(x3)"), IsOkAndHolds(ElementsAre(1, 2, 1, 1, 1)));
  for (const char* text :
       {"", "0", "2(x0)", "2(x", "2(x3", "2x3", "2,", "a", "-1", "1(x99999)", "9999999999"}) {
    EXPECT_THAT(ExpandTaskCounts(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

// Short forms made at random, together with what they stand for.
TEST(NodeList, ExpandingUndoesShortening) {
  std::mt19937 random(7);
  const auto up_to = [&](int most) { return static_cast<int>(random() % (most + 1)); };
  for (int round = 0; round < 500; ++round) {
    std::vector<std::string> items;
    std::vector<std::string> names;
    for (int item = up_to(4); item >= 0; --item) {
      const std::string prefix = absl::StrCat("p", std::string(up_to(2), '-'), "q");
      std::vector<std::string> ranges;
      for (int range = up_to(3); range >= 0; --range) {
        const int first = up_to(1200);
        const int last = first + up_to(20);
        const size_t digits = absl::StrCat(first).size() + up_to(2);
        const auto pad = [&](int value) {
          const std::string text = absl::StrCat(value);
          return std::string(digits > text.size() ? digits - text.size() : 0, '0') + text;
        };
        ranges.push_back(first == last ? pad(first) : absl::StrCat(pad(first), "-", pad(last)));
        for (int value = first; value <= last; ++value) names.push_back(prefix + pad(value));
      }
      items.push_back(absl::StrCat(prefix, "[", absl::StrJoin(ranges, ","), "]"));
    }
    EXPECT_THAT(ExpandNodeList(absl::StrJoin(items, ",")), IsOkAndHolds(names));
  }
}

// Whatever the text, the answer is an error of one line or names without brackets and commas.
TEST(NodeList, AnyTextIsHarmless) {
  constexpr char kAlphabet[] = "an019[]-,(x) \n\xff";
  std::mt19937 random(11);
  for (int round = 0; round < 20000; ++round) {
    std::string text(random() % 12, ' ');
    for (char& c : text) c = kAlphabet[random() % (sizeof(kAlphabet) - 1)];
    const auto nodes = ExpandNodeList(text);
    if (nodes.ok()) {
      ASSERT_FALSE(nodes->empty()) << text;
      for (const std::string& node : *nodes) {
        ASSERT_FALSE(node.empty()) << text;
        ASSERT_EQ(node.find_first_of("[], \n"), std::string::npos) << text;
      }
    } else {
      ASSERT_EQ(nodes.status().code(), absl::StatusCode::kInvalidArgument) << text;
    }
    const auto counts = ExpandTaskCounts(text);
    if (counts.ok()) ASSERT_FALSE(counts->empty()) << text;
  }
}

}  // namespace
}  // namespace plinth::comm
