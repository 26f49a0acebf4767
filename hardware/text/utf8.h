// UTF-8 as untrusted bytes: what is a character, what is broken, what is merely cut off.
//
// "Broken" follows Unicode's maximal subparts (as browsers, Rust and Python replace): overlong
// forms, surrogates and values above U+10FFFF are broken. Threads: pure functions.
#ifndef PLINTH_HARDWARE_TEXT_UTF8_H_
#define PLINTH_HARDWARE_TEXT_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace plinth {

enum class Utf8Kind {
  kCharacter,   // one whole character
  kInvalid,     // bytes that no continuation can turn into a character
  kIncomplete,  // the text ends inside what may still become a character
};

struct Utf8Unit {
  Utf8Kind kind;
  size_t bytes;  // 1..4: how much of the text this unit covers
};

// The unit at the start of `text`, which must not be empty.
Utf8Unit NextUtf8Unit(std::string_view text);

// Length of the longest prefix of `text` that is whole characters. Linear in that prefix.
size_t ValidUtf8Prefix(std::string_view text);

// `bytes` with every invalid or incomplete unit replaced by U+FFFD.
std::string ReplaceInvalidUtf8(std::string_view bytes);

// Appends to `out` the characters and replacements that are certain, and returns how many bytes
// of `bytes` were consumed. At most 3 bytes stay: the start of a character that may yet complete.
size_t AppendCertainUtf8(std::string_view bytes, std::string& out);

// Bytes at the start, or the end, of `text` that are characters of Unicode's White_Space.
size_t LeadingWhiteSpace(std::string_view text);
size_t TrailingWhiteSpace(std::string_view text);

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

}  // namespace plinth

#endif  // PLINTH_HARDWARE_TEXT_UTF8_H_
