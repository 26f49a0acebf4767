// Word characters, for tokens that count only where they stand alone.
//
// They are those of Unicode's recommendation for \w, which Hugging Face's tokenizers follow:
// Alphabetic, marks, decimal digits, connectors such as "_", and the two joiners.
// Threads: pure functions.
#ifndef PLINTH_MODELS_TOKENIZER_WORDS_H_
#define PLINTH_MODELS_TOKENIZER_WORDS_H_

#include <string_view>

namespace plinth::models {

// The first, or the last, character of `text` is a word character. False where the text is empty
// or has bytes there that belong to no UTF-8 character.
bool StartsWithWord(std::string_view text);
bool EndsInWord(std::string_view text);

}  // namespace plinth::models

#endif  // PLINTH_MODELS_TOKENIZER_WORDS_H_
