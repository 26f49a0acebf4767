// The spelling of raw bytes in tokenizer.json: one printable character for each byte value.
//
// Bytes that Latin-1 prints (33..126, 161..172, 174..255) stand for themselves; the other 68, in
// increasing order, are U+0100, U+0101, ... So a space is "Ġ" and a newline "Ċ".
// Threads: pure functions over constant tables.
#ifndef PLINTH_MODELS_TOKENIZER_BYTE_ALPHABET_H_
#define PLINTH_MODELS_TOKENIZER_BYTE_ALPHABET_H_

#include <optional>
#include <string>
#include <string_view>

namespace plinth::models {

// The spelling (UTF-8) of `bytes`.
std::string SpellBytes(std::string_view bytes);

// The bytes that `spelling` stands for; nothing if a character is outside the alphabet.
std::optional<std::string> BytesOfSpelling(std::string_view spelling);

}  // namespace plinth::models

#endif  // PLINTH_MODELS_TOKENIZER_BYTE_ALPHABET_H_
