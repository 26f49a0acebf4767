#include "plinth/models/tokenizer/streaming_decoder.h"

#include <utility>

#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/text/utf8.h"

namespace plinth::models {

absl::StatusOr<std::string> StreamingDecoder::Push(int32_t id) {
  ASSIGN_OR_RETURN(const std::string bytes, tokenizer_->Decode({&id, 1}, options_));
  pending_.append(bytes);
  std::string text;
  pending_.erase(0, AppendCertainUtf8(pending_, text));
  return text;
}

std::string StreamingDecoder::Flush() {
  return ReplaceInvalidUtf8(std::exchange(pending_, std::string()));
}

}  // namespace plinth::models
