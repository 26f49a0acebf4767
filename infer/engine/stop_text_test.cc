#include "plinth/infer/engine/stop_text.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "plinth/hardware/base/rng.h"

namespace plinth::infer {
namespace {

// The rule itself, character by character.
std::string Reference(const std::string& text, const std::vector<std::string>& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (end >= stop.size() && text.compare(end - stop.size(), stop.size(), stop) == 0) {
        longest = std::max(longest, stop.size());
      }
    }
    if (longest > 0) return text.substr(0, end - longest);
  }
  return text;
}

TEST(StopTextTest, AnyCutOfAnyTextFollowsTheRule) {
  uint64_t draw = 0;
  const auto random = [&draw](uint64_t below) { return RandomBits(5, 0, draw++) % below; };
  const auto random_text = [&random](uint64_t least, uint64_t most) {
    std::string text;
    for (uint64_t n = least + random(most - least + 1); n > 0; --n) {
      text += static_cast<char>('a' + random(2));
    }
    return text;
  };
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stops;
    for (uint64_t n = random(4); n > 0; --n) stops.push_back(random_text(1, 5));
    const std::string text = random_text(0, 20);
    const std::string expected = Reference(text, stops);
    StopText stop(stops);
    std::string released;
    for (size_t at = 0; at < text.size();) {
      const size_t length = 1 + random(4);
      released += stop.Push(text.substr(at, length));
      // Never releases what a later character could still turn into a stop text.
      ASSERT_EQ(expected.substr(0, released.size()), released) << text;
      at += length;
    }
    released += stop.Flush();
    ASSERT_EQ(released, expected) << text;
    ASSERT_EQ(stop.stopped(), expected != text);
  }
}

TEST(StopTextTest, HoldsBackNoMoreThanAPossibleStart) {
  StopText stop({"<end>"});
  EXPECT_EQ(stop.Push("a < b"), "a < b");
  EXPECT_EQ(stop.Push(" <en"), " ");
  EXPECT_EQ(stop.Push("ter> <e"), "<enter> ");
  EXPECT_EQ(stop.Push("nd> more"), "");
  EXPECT_TRUE(stop.stopped());
  EXPECT_EQ(stop.Push("x"), "");
  EXPECT_EQ(stop.Flush(), "");
}

}  // namespace
}  // namespace plinth::infer
