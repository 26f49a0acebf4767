// Token ids in, displayable text out: only whole UTF-8 characters leave, as early as possible.
//
// A character whose bytes are spread over several tokens waits for its last byte. Bytes become
// U+FFFD only once nothing that follows could complete them. Everything Push and Flush return,
// put together, equals ReplaceInvalidUtf8(tokenizer.Decode(all ids)).
//
// Owns nothing: the tokenizer must outlive it. Threads: one stream belongs to one thread.
#ifndef PLINTH_MODELS_TOKENIZER_STREAMING_DECODER_H_
#define PLINTH_MODELS_TOKENIZER_STREAMING_DECODER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "plinth/models/tokenizer/tokenizer.h"

namespace plinth::models {

class StreamingDecoder {
 public:
  explicit StreamingDecoder(const Tokenizer* tokenizer, const DecodeOptions& options = {})
      : tokenizer_(tokenizer), options_(options) {}

  // The text that became certain with this token, often a whole word, sometimes nothing. Errors:
  // kInvalidArgument for an id without a token; the stream is then as if Push had not been called.
  absl::StatusOr<std::string> Push(int32_t id);

  // The end of the text: U+FFFD if a character was left unfinished, else nothing. The decoder is
  // then as new.
  std::string Flush();

 private:
  const Tokenizer* tokenizer_;
  DecodeOptions options_;
  std::string pending_;  // at most 3 bytes: the start of one character
};

}  // namespace plinth::models

#endif  // PLINTH_MODELS_TOKENIZER_STREAMING_DECODER_H_
