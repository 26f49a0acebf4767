#include "plinth/hardware/text/utf8.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace plinth {
namespace {

std::string EncodePoint(uint32_t point) {
  std::string out;
  if (point < 0x80) {
    out = {static_cast<char>(point)};
  } else if (point < 0x800) {
    out = {static_cast<char>(0xC0 | point >> 6), static_cast<char>(0x80 | (point & 63))};
  } else if (point < 0x10000) {
    out = {static_cast<char>(0xE0 | point >> 12), static_cast<char>(0x80 | (point >> 6 & 63)),
           static_cast<char>(0x80 | (point & 63))};
  } else {
    out = {static_cast<char>(0xF0 | point >> 18), static_cast<char>(0x80 | (point >> 12 & 63)),
           static_cast<char>(0x80 | (point >> 6 & 63)), static_cast<char>(0x80 | (point & 63))};
  }
  return out;
}

// Which byte strings begin some character, from the list of all characters and nothing else.
class Oracle {
 public:
  Oracle() : starts_{{}, std::vector<bool>(1 << 8), std::vector<bool>(1 << 16), {}} {
    starts_[3].resize(1 << 24);
    for (uint32_t point = 0; point <= 0x10FFFF; ++point) {
      if (point >= 0xD800 && point <= 0xDFFF) continue;
      const std::string bytes = EncodePoint(point);
      for (size_t n = 1; n < bytes.size(); ++n) starts_[n][Number(bytes.substr(0, n))] = true;
    }
  }

  Utf8Unit Next(const std::string& text) const {
    size_t n = 0;
    while (n < 3 && n < text.size() && starts_[n + 1][Number(text.substr(0, n + 1))]) ++n;
    if (n == text.size()) return {Utf8Kind::kIncomplete, n};
    const uint8_t first = static_cast<uint8_t>(text[0]);
    const size_t wanted = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    const bool continues = n == 0 ? first < 0x80 : (static_cast<uint8_t>(text[n]) & 0xC0) == 0x80;
    if (n + 1 == wanted && continues) return {Utf8Kind::kCharacter, wanted};
    return {Utf8Kind::kInvalid, n == 0 ? 1 : n};
  }

 private:
  static uint32_t Number(const std::string& bytes) {
    uint32_t number = 0;
    for (const char c : bytes) number = number << 8 | static_cast<uint8_t>(c);
    return number;
  }
  std::vector<bool> starts_[4];
};

TEST(Utf8, AgreesWithTheListOfAllCharacters) {
  const Oracle oracle;
  const auto check = [&](const std::string& text) {
    const Utf8Unit got = NextUtf8Unit(text), want = oracle.Next(text);
    ASSERT_EQ(got.kind, want.kind) << ::testing::PrintToString(text);
    ASSERT_EQ(got.bytes, want.bytes) << ::testing::PrintToString(text);
  };
  for (int a = 0; a < 256; ++a) {
    check({static_cast<char>(a)});
    for (int b = 0; b < 256; ++b) check({static_cast<char>(a), static_cast<char>(b)});
  }
  // Bytes at and around every border of the encoding.
  const std::string borders(
      "\x00\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xC1\xC2\xDF\xE0\xED\xEF\xF0\xF4\xF5\xFF", 19);
  for (const char a : borders) {
    for (const char b : borders) {
      for (const char c : borders) {
        check({a, b, c});
        for (const char d : borders) check({a, b, c, d});
      }
    }
  }
}

TEST(Utf8, EveryCharacterIsOne) {
  for (uint32_t point = 0; point <= 0x10FFFF; ++point) {
    if (point >= 0xD800 && point <= 0xDFFF) continue;
    const std::string text = EncodePoint(point) + "x";
    const Utf8Unit unit = NextUtf8Unit(text);
    ASSERT_EQ(unit.kind, Utf8Kind::kCharacter) << point;
    ASSERT_EQ(unit.bytes, text.size() - 1) << point;
  }
}

TEST(Utf8, ReplacesMaximalSubparts) {
  EXPECT_EQ(ReplaceInvalidUtf8(""), "");
  EXPECT_EQ(ReplaceInvalidUtf8("plain é😀"), "plain é😀");
  EXPECT_EQ(ReplaceInvalidUtf8("\xF0\x9F\x98"), "\uFFFD");
  EXPECT_EQ(ReplaceInvalidUtf8("\xF0\x9F\x98z"), "\uFFFDz");
  EXPECT_EQ(ReplaceInvalidUtf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(ReplaceInvalidUtf8("\xC0\xAF"), "\uFFFD\uFFFD");
  EXPECT_EQ(ReplaceInvalidUtf8("a\xFF\xFE é\xE2\x82"), "a\uFFFD\uFFFD é\uFFFD");
}

TEST(Utf8, ValidPrefixEndsAtTheFirstBrokenByte) {
  const std::string valid = "0123456789 é日本語😀 and more ASCII after that";
  EXPECT_EQ(ValidUtf8Prefix(valid), valid.size());
  EXPECT_EQ(ValidUtf8Prefix(valid + "\xFF" + valid), valid.size());
  EXPECT_EQ(ValidUtf8Prefix(valid + "\xE2\x82"), valid.size());
  EXPECT_EQ(ValidUtf8Prefix(""), 0u);
}

TEST(Utf8, WhiteSpaceIsUnicodes) {
  const auto is_space = [](uint32_t p) {
    return (p >= 9 && p <= 13) || p == 0x20 || p == 0x85 || p == 0xA0 || p == 0x1680 ||
           (p >= 0x2000 && p <= 0x200A) || p == 0x2028 || p == 0x2029 || p == 0x202F ||
           p == 0x205F || p == 0x3000;
  };
  for (uint32_t point = 0; point < 0x11000; ++point) {
    if (point >= 0xD800 && point <= 0xDFFF) continue;
    const std::string text = EncodePoint(point);
    const size_t expected = is_space(point) ? text.size() : 0;
    ASSERT_EQ(LeadingWhiteSpace(text + "x "), expected) << point;
    ASSERT_EQ(TrailingWhiteSpace(" x" + text), expected) << point;
  }
  EXPECT_EQ(LeadingWhiteSpace(" \n\u3000"), 5u);
  EXPECT_EQ(TrailingWhiteSpace(" \n\u3000"), 5u);
  EXPECT_EQ(TrailingWhiteSpace(""), 0u);
}

}  // namespace
}  // namespace plinth
