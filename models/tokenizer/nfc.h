// Unicode normalization form C, which some published tokenizers apply before anything else.
#ifndef PLINTH_MODELS_TOKENIZER_NFC_H_
#define PLINTH_MODELS_TOKENIZER_NFC_H_

#include <string>
#include <string_view>

namespace plinth::models {

// `text` in form C: each accented letter one character where Unicode has it. Bytes that belong to
// no UTF-8 character stay as they are, and what stands on either side of them is normalized apart.
// Idempotent. Needs O(n log n) steps also for text that is nothing but combining marks, and up to
// 12 bytes of memory for each character; text below U+0300 is only looked at.
// Threads: a pure function.
std::string ToNfc(std::string_view text);

}  // namespace plinth::models

#endif  // PLINTH_MODELS_TOKENIZER_NFC_H_
