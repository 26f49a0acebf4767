#include "plinth/hardware/text/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace plinth {
namespace {

// What a lead byte demands: total length (0: never a lead), and the range of the second byte,
// which is where overlong forms, surrogates and too large values are excluded.
struct Lead {
  uint8_t length, second_min, second_max;
};

Lead ClassifyLead(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// No spelling of one is the end of another's, so a text can be read from either side.
constexpr std::string_view kWhiteSpace[] = {
    "\t",           "\n",           "\v",           "\f",           "\r",           " ",
    "\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x81", "\xE2\x80\x82",
    "\xE2\x80\x83", "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86", "\xE2\x80\x87", "\xE2\x80\x88",
    "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\xA8", "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F",
    "\xE3\x80\x80"};

// Length of the longest run of characters of kWhiteSpace at one end of the text, where
// `at_end(text, character)` tells whether a character stands there and `cut(text, bytes)`
// takes it away.
template <typename AtEnd, typename Cut>
size_t WhiteSpaceRun(std::string_view text, AtEnd at_end, Cut cut) {
  const size_t whole = text.size();
  while (true) {
    const auto found = std::find_if(std::begin(kWhiteSpace), std::end(kWhiteSpace),
                                    [&](std::string_view space) { return at_end(text, space); });
    if (found == std::end(kWhiteSpace)) return whole - text.size();
    cut(text, found->size());
  }
}

}  // namespace

size_t LeadingWhiteSpace(std::string_view text) {
  return WhiteSpaceRun(
      text, [](std::string_view t, std::string_view space) { return t.starts_with(space); },
      [](std::string_view& t, size_t bytes) { t.remove_prefix(bytes); });
}

size_t TrailingWhiteSpace(std::string_view text) {
  return WhiteSpaceRun(
      text, [](std::string_view t, std::string_view space) { return t.ends_with(space); },
      [](std::string_view& t, size_t bytes) { t.remove_suffix(bytes); });
}

Utf8Unit NextUtf8Unit(std::string_view text) {
  const Lead lead = ClassifyLead(static_cast<uint8_t>(text[0]));
  if (lead.length == 0) return {Utf8Kind::kInvalid, 1};
  for (size_t i = 1; i < lead.length; ++i) {
    if (i == text.size()) return {Utf8Kind::kIncomplete, i};
    const uint8_t byte = static_cast<uint8_t>(text[i]);
    const uint8_t least = i == 1 ? lead.second_min : 0x80;
    const uint8_t most = i == 1 ? lead.second_max : 0xBF;
    if (byte < least || byte > most) return {Utf8Kind::kInvalid, i};
  }
  return {Utf8Kind::kCharacter, lead.length};
}

size_t ValidUtf8Prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    if (text.size() - at >= 8) {
      uint64_t word;
      std::memcpy(&word, text.data() + at, sizeof(word));
      if ((word & 0x8080808080808080u) == 0) {
        at += 8;
        continue;
      }
    }
    const Utf8Unit unit = NextUtf8Unit(text.substr(at));
    if (unit.kind != Utf8Kind::kCharacter) break;
    at += unit.bytes;
  }
  return at;
}

size_t AppendCertainUtf8(std::string_view bytes, std::string& out) {
  size_t at = 0;
  while (at < bytes.size()) {
    const size_t valid = ValidUtf8Prefix(bytes.substr(at));
    out.append(bytes.substr(at, valid));
    at += valid;
    if (at == bytes.size()) break;
    const Utf8Unit unit = NextUtf8Unit(bytes.substr(at));
    if (unit.kind == Utf8Kind::kIncomplete) break;
    out.append(kReplacementCharacter);
    at += unit.bytes;
  }
  return at;
}

std::string ReplaceInvalidUtf8(std::string_view bytes) {
  std::string text;
  const size_t used = AppendCertainUtf8(bytes, text);
  if (used < bytes.size()) text.append(kReplacementCharacter);
  return text;
}

}  // namespace plinth
