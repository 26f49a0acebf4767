#include "plinth/infer/load/prompt.h"

#include "plinth/hardware/base/status_macros.h"

namespace plinth::infer {

void StartIfEmpty(const models::Tokenizer& tokenizer, std::vector<int32_t>& prompt) {
  if (prompt.empty() && tokenizer.end_of_text_id()) prompt.push_back(*tokenizer.end_of_text_id());
}

absl::StatusOr<std::vector<int32_t>> EncodePrompt(const models::Tokenizer& tokenizer,
                                                  std::string_view text) {
  ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer.Encode(text, {}));
  StartIfEmpty(tokenizer, ids);
  return ids;
}

}  // namespace plinth::infer
