// What is asked of the engine, and what comes back.
#ifndef PLINTH_INFER_ENGINE_REQUEST_H_
#define PLINTH_INFER_ENGINE_REQUEST_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "plinth/infer/sampling/sampling.h"

namespace plinth::infer {

struct GenerateRequest {
  std::vector<int32_t> prompt;  // at least one id, each in [0, vocab_size)
  // New tokens at most; >= 0. A reply also ends when prompt and reply together reach
  // Engine::max_tokens(). 0: the prompt is only scored (prompt_logprobs).
  int64_t max_tokens = 16;
  SamplingParams sampling;
  // The reply ends before the first of these texts; at most 16, none empty.
  std::vector<std::string> stop;
  bool ignore_end = false;
  // Present: every token comes with its log-probability and that many alternatives.
  std::optional<int64_t> top_logprobs;
  // Also for the prompt's tokens, in events before the first new token. Needs top_logprobs.
  bool prompt_logprobs = false;
};

enum class FinishReason { kNone, kStop, kLength, kCancelled, kError };

struct TokenEvent {
  int32_t id = 0;
  // Absent unless asked for, and for the first token of a prompt, which nothing precedes.
  std::optional<Logprobs> logprobs;
};

// A step's news of one request. The events of a request arrive in order; the last, and
// only the last, has a finish reason. Joined `text` is the reply: never past a stop text,
// never half a character. It may lag behind `token`, while it could be the start of a stop
// text. The token that ends a reply (end_ids) is not reported.
struct GenerateEvent {
  std::vector<TokenEvent> prompt;   // prompt_logprobs: the next tokens of the prompt
  std::optional<TokenEvent> token;  // one new token
  std::string text;
  FinishReason finish = FinishReason::kNone;
  absl::Status error;  // kError: what failed
};

// Called on the engine's thread: must not block, and may call Cancel but not Submit. After
// the event with a finish reason it is not called again and is destroyed.
using GenerateCallback = std::function<void(const GenerateEvent&)>;
using RequestId = uint64_t;

}  // namespace plinth::infer

#endif  // PLINTH_INFER_ENGINE_REQUEST_H_
