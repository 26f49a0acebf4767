#include "plinth/models/tokenizer/pre_tokenizer.h"

#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::models {
namespace {

using ::plinth::testing::IsOkAndHolds;
using ::plinth::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Pieces = std::vector<std::string>;

absl::StatusOr<Pieces> Split(std::vector<std::string> patterns, std::string_view text) {
  auto made = PreTokenizer::Create(std::move(patterns));
  if (!made.ok()) return made.status();
  Pieces pieces;
  const absl::Status status =
      (*made)->Split(text, [&](std::string_view piece) { pieces.emplace_back(piece); });
  if (!status.ok()) return status;
  return pieces;
}

TEST(PreTokenizer, CutsLikeGpt2) {
  EXPECT_THAT(
      Split({std::string(kGpt2Pattern)}, "I'll pay  $3.50\n\n now"),
      IsOkAndHolds(ElementsAre("I", "'ll", " pay", " ", " $", "3", ".", "50", "\n\n", " now")));
}

TEST(PreTokenizer, KeepsWhatNoPatternMatches) {
  EXPECT_THAT(Split({"b+"}, "aabba"), IsOkAndHolds(ElementsAre("aa", "bb", "a")));
  EXPECT_THAT(Split({}, "aabba"), IsOkAndHolds(ElementsAre("aabba")));
  EXPECT_THAT(Split({"b+"}, ""), IsOkAndHolds(ElementsAre()));
  EXPECT_THAT(Split({"b+", "a"}, "aabba"), IsOkAndHolds(ElementsAre("a", "a", "bb", "a")));
}

TEST(PreTokenizer, IsolatesBytesOutsideCharacters) {
  EXPECT_THAT(Split({std::string(kGpt2Pattern)}, "one \xFF\xC0 two\xE2\x82"),
              IsOkAndHolds(ElementsAre("one", " ", "\xFF\xC0", " two", "\xE2\x82")));
}

TEST(PreTokenizer, PiecesConcatenateToAnyBytes) {
  std::mt19937 rng(3);
  for (int round = 0; round < 2000; ++round) {
    std::string text(rng() % 60, ' ');
    const bool ascii = round % 2 == 0;
    for (char& c : text) c = static_cast<char>(ascii ? rng() % 128 : rng() % 256);
    const auto pieces = Split({std::string(kGpt2Pattern)}, text);
    ASSERT_OK(pieces);
    std::string joined;
    for (const std::string& piece : *pieces) {
      EXPECT_FALSE(piece.empty());
      joined += piece;
    }
    ASSERT_EQ(joined, text);
  }
}

TEST(PreTokenizer, WhiteSpaceIsUnicodes) {
  // U+0085 and U+3000 are white space; U+180E and U+200B are not.
  EXPECT_THAT(Split({R"(\s+)"}, "a\u0085\u3000b\u180E\u200Bc"),
              IsOkAndHolds(ElementsAre("a", "\u0085\u3000", "b\u180E\u200Bc")));
  EXPECT_THAT(Split({R"([^\s]+)"}, "a\u180E \u2028b"),
              IsOkAndHolds(ElementsAre("a\u180E", " \u2028", "b")));
}

TEST(PreTokenizer, HostileTextEndsSoon) {
  const std::string llama3 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
                             R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  const size_t n = 2 << 20;
  for (const std::string& pattern : {std::string(kGpt2Pattern), llama3}) {
    EXPECT_THAT(Split({pattern}, std::string(n, ' ')),
                IsOkAndHolds(ElementsAre(std::string(n, ' '))));
    EXPECT_THAT(Split({pattern}, std::string(n, ' ') + "x"),
                IsOkAndHolds(ElementsAre(std::string(n - 1, ' '), " x")));
    EXPECT_THAT(Split({pattern}, std::string(n, 'x')),
                IsOkAndHolds(ElementsAre(std::string(n, 'x'))));
  }
  // Nested repeats try 2^60 ways before they give up, and the limit stops them.
  EXPECT_THAT(Split({"(?:a+)+[bc]"}, std::string(60, 'a')),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("limit")));
}

TEST(TranslatePattern, RefusesWhatTheEnginesReadDifferently) {
  for (const char* pattern :
       {"a.b",       "^a",          "a$",     R"(\w+)",  R"(\bx)",  R"(\h)",  R"(\R)",
        R"(\u00e9)", "[[:alpha:]]", "[a&&b]", "[]a]",    R"([\S])", "(?m:a)", "(?<name>a)",
        "(?#x)",     "(*UCP)a",     "a{,3}",  "a{1,3}+", R"(\xE9)", R"(\pL)"}) {
    EXPECT_THAT(TranslatePattern(pattern),
                StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("not supported")))
        << pattern;
  }
  for (const char* pattern : {"[a", "a\\", "[\\"}) {
    EXPECT_THAT(TranslatePattern(pattern), StatusIs(absl::StatusCode::kInvalidArgument)) << pattern;
  }
  EXPECT_THAT(TranslatePattern(R"((?i:'s) ?[^\r\n\p{L}\x{4e00}-\x{9fa5}\-\]]{1,3}\d++\/(?!x))"),
              IsOkAndHolds(R"((?i:'s) ?[^\r\n\p{L}\x{4e00}-\x{9fa5}\-\]]{1,3}\d++\/(?!x))"));
}

TEST(PreTokenizer, RefusesUnusablePatterns) {
  EXPECT_THAT(Split({"a*"}, "x"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("empty")));
  for (const char* pattern : {"(a", R"(\p{NoSuchScript})", "a)", "[z-a]"}) {
    EXPECT_THAT(Split({pattern}, "x"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("does not compile")));
  }
  const std::string deep = std::string(1000, '(') + "a" + std::string(1000, ')');
  EXPECT_THAT(Split({deep}, "x"), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace plinth::models
