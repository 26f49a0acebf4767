#include "plinth/models/tokenizer/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/text/utf8.h"

namespace plinth::models {
namespace {

constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
// The longest canonical decomposition of a character has four.
constexpr size_t kLongestDecomposition = 8;

int CombiningClass(int32_t character) { return utf8proc_get_property(character)->combining_class; }

std::vector<int32_t> Decompose(std::string_view valid_utf8) {
  std::vector<int32_t> characters;
  characters.reserve(valid_utf8.size());
  const auto* bytes = reinterpret_cast<const uint8_t*>(valid_utf8.data());
  for (size_t at = 0; at < valid_utf8.size();) {
    int32_t character = 0;
    const auto length =
        utf8proc_iterate(bytes + at, static_cast<int64_t>(valid_utf8.size() - at), &character);
    CHECK_GT(length, 0);
    at += static_cast<size_t>(length);
    std::array<int32_t, kLongestDecomposition> parts;
    int unused = 0;
    const auto count =
        utf8proc_decompose_char(character, parts.data(), parts.size(), kOptions, &unused);
    CHECK(count >= 0 && count <= static_cast<int64_t>(parts.size()));
    characters.insert(characters.end(), parts.begin(), parts.begin() + count);
  }
  return characters;
}

// Canonical order: marks after a base by their class. The library would sort a run of n marks in
// n^2 steps, which a hostile text of marks alone could make last for hours.
void OrderMarks(std::vector<int32_t>& characters) {
  const auto is_mark = [](int32_t character) { return CombiningClass(character) != 0; };
  for (auto begin = characters.begin();;) {
    begin = std::find_if(begin, characters.end(), is_mark);
    if (begin == characters.end()) return;
    const auto end = std::find_if_not(begin, characters.end(), is_mark);
    std::stable_sort(begin, end,
                     [](int32_t a, int32_t b) { return CombiningClass(a) < CombiningClass(b); });
    begin = end;
  }
}

void AppendNfc(std::string_view valid_utf8, std::string& out) {
  std::vector<int32_t> characters = Decompose(valid_utf8);
  OrderMarks(characters);
  const auto count = utf8proc_normalize_utf32(characters.data(),
                                              static_cast<int64_t>(characters.size()), kOptions);
  CHECK_GE(count, 0);
  for (int64_t i = 0; i < count; ++i) {
    uint8_t bytes[4];
    const auto length = utf8proc_encode_char(characters[static_cast<size_t>(i)], bytes);
    out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
  }
}

}  // namespace

std::string ToNfc(std::string_view text) {
  // Characters below U+0300 neither combine nor decompose in form C; its first byte is 0xCC.
  const bool may_change = std::ranges::any_of(text, [](char c) { return (c & 0xFF) >= 0xCC; });
  if (!may_change) return std::string(text);
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t valid = ValidUtf8Prefix(text);
    AppendNfc(text.substr(0, valid), out);
    text.remove_prefix(valid);
    if (text.empty()) break;
    const size_t broken = NextUtf8Unit(text).bytes;
    out.append(text.substr(0, broken));
    text.remove_prefix(broken);
  }
  return out;
}

}  // namespace plinth::models
