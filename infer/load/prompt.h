// Prompts as ids, the same for every way in.
#ifndef PLINTH_INFER_LOAD_PROMPT_H_
#define PLINTH_INFER_LOAD_PROMPT_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "plinth/models/tokenizer/tokenizer.h"

namespace plinth::infer {

// A model continues something: an empty prompt becomes the end-of-text token, after which it
// expects the start of a text. Stays empty when the tokenizer has no such token.
void StartIfEmpty(const models::Tokenizer& tokenizer, std::vector<int32_t>& prompt);

// Ids of a text, never of a special token, and those of StartIfEmpty when it has none. Errors:
// Tokenizer::Encode's.
absl::StatusOr<std::vector<int32_t>> EncodePrompt(const models::Tokenizer& tokenizer,
                                                  std::string_view text);

}  // namespace plinth::infer

#endif  // PLINTH_INFER_LOAD_PROMPT_H_
