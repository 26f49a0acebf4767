// A request to the completions or chat API, read from JSON.
//
// The wire format is OpenAI's (platform.openai.com, "Completions" and "Chat"). What is not
// supported is refused by name, never ignored: a client that asks for n=2 or tools must
// not get something else. Accepted beyond it, as vLLM spells them: top_k, min_p, ignore_eos.
#ifndef PLINTH_INFER_SERVE_OPENAI_CALL_H_
#define PLINTH_INFER_SERVE_OPENAI_CALL_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "plinth/infer/engine/request.h"
#include "plinth/models/tokenizer/tokenizer.h"

namespace plinth::infer {

struct Call {
  bool chat = false;
  std::string model;  // as the client wrote it; empty when absent
  GenerateRequest generate;
  bool stream = false;
  bool include_usage = false;  // stream_options.include_usage
  bool echo = false;           // completions: the reply begins with the prompt
  std::string prompt_text;     // what echo repeats
};

struct CallDefaults {
  int64_t chat_max_tokens = 0;  // chat without max_tokens: as long as the context allows
  uint64_t seed = 0;            // for a request without one
};

// kInvalidArgument and kUnimplemented begin with the name of the field at fault and ": ".
absl::StatusOr<Call> ParseCompletion(std::string_view body, const models::Tokenizer& tokenizer,
                                     const CallDefaults& defaults);
absl::StatusOr<Call> ParseChat(std::string_view body, const models::Tokenizer& tokenizer,
                               const CallDefaults& defaults);

}  // namespace plinth::infer

#endif  // PLINTH_INFER_SERVE_OPENAI_CALL_H_
