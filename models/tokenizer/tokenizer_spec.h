// What a byte-level BPE tokenizer is made of, and its spelling as Hugging Face's tokenizer.json.
//
// Understood: model BPE (merges as strings or pairs, ignore_merges); pre_tokenizer ByteLevel, or a
// Sequence of isolating Split patterns and one ByteLevel at its end; decoder ByteLevel;
// post_processor absent, ByteLevel, TemplateProcessing or a Sequence of these; normalizer absent or
// NFC; added tokens. Whatever else a file asks for is an error that names the key.
#ifndef PLINTH_MODELS_TOKENIZER_TOKENIZER_SPEC_H_
#define PLINTH_MODELS_TOKENIZER_TOKENIZER_SPEC_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace plinth::models {

struct AddedToken {
  int32_t id = 0;
  std::string content;       // raw text, not in the byte alphabet
  bool special = false;      // user text becomes it only when the caller allows that
  bool normalized = false;   // sought after all tokens that are not normalized
  bool lstrip = false;       // takes the white space before it along,
  bool rstrip = false;       // and that after it
  bool single_word = false;  // stays text where a word character touches it
};

struct TokenizerSpec {
  std::vector<std::string> vocab;  // [id] in the byte alphabet; empty where the model has no token
  std::vector<std::pair<int32_t, int32_t>> merges;  // by rank
  bool nfc = false;                                 // text is brought to Unicode form C first
  bool ignore_merges = false;         // a piece that is itself in `vocab` is not built from merges
  bool add_prefix_space = false;      // text that does not start with a space gets one
  bool gpt2_pattern = true;           // ByteLevel's own pattern, after `patterns`
  std::vector<std::string> patterns;  // Oniguruma dialect, each isolating its matches
  std::vector<AddedToken> added;
  std::vector<int32_t> prefix_ids, suffix_ids;  // what post_processor puts around a text
  std::string post_processor = "null";          // its JSON, kept as read
};

// Bounds on what a file may ask of us.
inline constexpr size_t kMaxTokenizerJsonBytes = 256u << 20;
inline constexpr int32_t kMaxTokenId = (1 << 21) - 1;

// Errors: kInvalidArgument naming key, expected and found for malformed or contradictory JSON,
// kUnimplemented naming the key for a part that is not understood. What spans several parts (do
// all bytes have a token, does a merge's result exist) is checked by Tokenizer::Create.
absl::StatusOr<TokenizerSpec> ParseTokenizerJson(std::string_view json);

// Canonical text: equal specs give equal bytes. ParseTokenizerJson reads it back unchanged, and
// Hugging Face's `tokenizers` loads it.
std::string TokenizerJson(const TokenizerSpec& spec);

}  // namespace plinth::models

#endif  // PLINTH_MODELS_TOKENIZER_TOKENIZER_SPEC_H_
