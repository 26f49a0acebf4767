// The JSON of replies: whole, in chunks, and errors.
#ifndef PLINTH_INFER_SERVE_OPENAI_REPLY_H_
#define PLINTH_INFER_SERVE_OPENAI_REPLY_H_

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "plinth/infer/engine/request.h"
#include "plinth/infer/serve/openai/call.h"
#include "plinth/models/tokenizer/streaming_decoder.h"
#include "plinth/models/tokenizer/tokenizer.h"

namespace plinth::infer {

// What every object of one reply repeats.
struct ReplyLabel {
  std::string id;       // "chatcmpl-..."
  std::string model;    // as served
  int64_t created = 0;  // seconds since 1970
};

// Turns the events of one request into JSON: Add them, then either take a chunk after each,
// or the whole at the end. The texts of the chunks, put together, are the text of the whole,
// and so are their lists of log-probabilities. Used by one thread. Borrows the call and the
// tokenizer.
//
// With log-probabilities every token that gave text has an entry: one that begins at or after
// the start of a stop text has none, as in OpenAI's replies, so every text_offset lies within
// the text. In a stream an entry therefore comes with its text, not before. The lists of an
// entry are of equal length always. A token that is not whole characters is written
// "bytes:\xe2\x82" (OpenAI's way), never with U+FFFD. text_offset counts characters of the
// choice's text.
class ReplyWriter {
 public:
  ReplyWriter(const Call& call, const models::Tokenizer& tokenizer, ReplyLabel label);

  // An event that is not kCancelled or kError.
  void Add(const GenerateEvent& event);
  // After the last event.
  std::string Whole();

  // The first chunk of a chat stream names the role; nothing for completions.
  std::optional<std::string> FirstChunk() const;
  // What was added since the last call; nothing when it is no news for a client, because the
  // text is held back.
  std::optional<std::string> TakeChunk();
  // stream_options.include_usage: no choices, only the counts.
  std::string UsageChunk() const;

 private:
  struct ScoredToken {
    TokenEvent event;
    int64_t offset = 0;  // of its text, in characters
    bool prompt = false;
  };

  void Keep(const TokenEvent& event, bool prompt);
  // Tokens of tokens_, from the first, whose text has been released.
  size_t ReleasedTokens() const;
  boost::json::object Envelope(bool chunk) const;
  boost::json::object Usage() const;
  boost::json::object Choice(bool chunk);
  boost::json::value TakeLogprobs();
  boost::json::object CompletionLogprobs(std::span<const ScoredToken> scored) const;
  boost::json::object ChatLogprobs(std::span<const ScoredToken> scored) const;
  std::string TokenText(int32_t id) const;
  boost::json::object ChatToken(const TokenLogprob& token) const;

  const Call& call_;
  const models::Tokenizer& tokenizer_;
  const ReplyLabel label_;
  // Since the last chunk.
  std::string text_;
  std::vector<ScoredToken> tokens_;
  FinishReason finish_ = FinishReason::kNone;
  bool end_is_news_ = false;
  // Since the start.
  bool replying_ = false;  // past the prompt
  int64_t generated_ = 0;
  models::StreamingDecoder offsets_;  // follows the tokens, for text_offset
  int64_t offset_ = 0;                // characters of the tokens so far
  int64_t released_ = 0;              // of these, characters that are text of the reply or prompt
};

struct ErrorReply {
  int status = 500;
  std::string body;  // {"error": {"message", "type", "param", "code"}}
};

// kInvalidArgument, kUnimplemented and kOutOfRange are 400, kNotFound 404, kResourceExhausted
// 429, kUnavailable and kCancelled 503, the rest 500. `param` is what stands before the first
// ": " of the message when it looks like a field; `code` may be empty (null).
ErrorReply ErrorFor(const absl::Status& status, const std::string& code = "");

}  // namespace plinth::infer

#endif  // PLINTH_INFER_SERVE_OPENAI_REPLY_H_
