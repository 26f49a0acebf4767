#include "plinth/infer/serve/openai/call.h"

#include <boost/json/parse.hpp>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/json_fields.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/text/utf8.h"
#include "plinth/infer/load/prompt.h"

namespace plinth::infer {
namespace {

namespace json = boost::json;

constexpr int32_t kMostTokens = 1 << 30;
constexpr int32_t kMostTopLogprobs = 20;

absl::StatusOr<json::value> ParseBody(std::string_view body) {
  boost::system::error_code ec;
  json::parse_options options;
  options.max_depth = 32;
  json::value value = json::parse(json::string_view(body.data(), body.size()), ec, {}, options);
  if (ec) return absl::InvalidArgumentError("body: not valid JSON: " + ec.message());
  return value;
}

absl::Status ReadStop(Fields& fields, std::vector<std::string>& stop) {
  const json::value* value = fields.Find("stop");
  if (value == nullptr) return absl::OkStatus();
  if (value->is_string()) {
    stop.emplace_back(value->get_string());
    return absl::OkStatus();
  }
  if (!value->is_array()) return WrongJson("stop", "a string or an array of strings", *value);
  for (const json::value& item : value->get_array()) {
    if (!item.is_string()) return WrongJson("stop", "a string or an array of strings", item);
    stop.emplace_back(item.get_string());
  }
  return absl::OkStatus();
}

absl::Status ReadSampling(Fields& fields, const CallDefaults& defaults, SamplingParams& sampling) {
  ASSIGN_OR_RETURN(sampling.temperature, fields.Number("temperature", 0, 2, 1));
  ASSIGN_OR_RETURN(sampling.top_p, fields.Number("top_p", 0, 1, 1));
  ASSIGN_OR_RETURN(sampling.min_p, fields.Number("min_p", 0, 1, 0));
  if (fields.Find("top_k") != nullptr) {
    // vLLM's clients write -1 for "all".
    ASSIGN_OR_RETURN(const int32_t top_k, fields.Integer("top_k", -1, kMostTokens));
    sampling.top_k = top_k < 0 ? 0 : top_k;
  }
  sampling.seed = defaults.seed;
  if (const json::value* seed = fields.Find("seed")) {
    if (!seed->is_int64() && !seed->is_uint64()) return WrongJson("seed", "an integer", *seed);
    sampling.seed =
        seed->is_int64() ? static_cast<uint64_t>(seed->get_int64()) : seed->get_uint64();
  }
  return absl::OkStatus();
}

absl::Status ReadStream(Fields& fields, Call& call) {
  ASSIGN_OR_RETURN(call.stream, fields.Bool("stream", false));
  const json::value* value = fields.Find("stream_options");
  if (value == nullptr) return absl::OkStatus();
  if (!call.stream) {
    return absl::InvalidArgumentError("stream_options: only allowed when stream is true");
  }
  ASSIGN_OR_RETURN(Fields options, Fields::Of(*value, "stream_options"));
  ASSIGN_OR_RETURN(call.include_usage, options.Bool("include_usage", false));
  return options.Done();
}

// Fields that both APIs share, and those that both refuse.
absl::Status ReadCommon(Fields& fields, const CallDefaults& defaults, Call& call) {
  if (fields.Find("model") != nullptr) {
    ASSIGN_OR_RETURN(call.model, fields.String("model"));
  }
  RETURN_IF_ERROR(ReadSampling(fields, defaults, call.generate.sampling));
  RETURN_IF_ERROR(ReadStop(fields, call.generate.stop));
  RETURN_IF_ERROR(ReadStream(fields, call));
  ASSIGN_OR_RETURN(call.generate.ignore_end, fields.Bool("ignore_eos", false));
  for (const char* single : {"n", "best_of"}) {
    const json::value* value = fields.Find(single);
    if (value == nullptr || (value->is_int64() && value->get_int64() == 1)) continue;
    return UnsupportedJson(single, "1", *value);
  }
  for (const char* refused :
       {"presence_penalty", "frequency_penalty", "logit_bias", "suffix", "tools", "functions"}) {
    RETURN_IF_ERROR(fields.MustBeOff(refused));
  }
  // Says who calls and why; changes nothing about the reply.
  for (const char* informative : {"user", "metadata", "store", "safety_identifier"}) {
    fields.Find(informative);
  }
  if (const json::value* format = fields.Find("response_format")) {
    ASSIGN_OR_RETURN(Fields options, Fields::Of(*format, "response_format"));
    ASSIGN_OR_RETURN(const std::string type, options.String("type"));
    if (type != "text") {
      return UnsupportedJson("response_format.type", "\"text\"", *options.Find("type"));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadPrompt(Fields& fields, const models::Tokenizer& tokenizer, Call& call) {
  ASSIGN_OR_RETURN(const json::value* value, fields.Get("prompt"));
  // ["text"] is one prompt as well; several would need several choices.
  if (value->is_array() && value->get_array().size() == 1 && !value->get_array()[0].is_number()) {
    value = &value->get_array()[0];
  }
  if (value->is_string()) {
    call.prompt_text = std::string(value->get_string());
    ASSIGN_OR_RETURN(call.generate.prompt, tokenizer.Encode(call.prompt_text, {}), _ << "prompt");
  } else if (value->is_array()) {
    for (const json::value& id : value->get_array()) {
      if (!id.is_int64() || id.get_int64() < 0 || id.get_int64() >= tokenizer.vocab_size()) {
        return WrongJson("prompt",
                         absl::StrCat("a string, or token ids below ", tokenizer.vocab_size(),
                                      "; several prompts need several requests"),
                         id);
      }
      call.generate.prompt.push_back(static_cast<int32_t>(id.get_int64()));
    }
    ASSIGN_OR_RETURN(const std::string bytes,
                     tokenizer.Decode(call.generate.prompt, {.skip_special = true}), _ << "prompt");
    call.prompt_text = ReplaceInvalidUtf8(bytes);
  } else {
    return WrongJson("prompt", "a string or an array of token ids", *value);
  }
  StartIfEmpty(tokenizer, call.generate.prompt);
  if (call.generate.prompt.empty()) {
    return absl::InvalidArgumentError("prompt: must hold at least one token");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> MessageText(Fields& message) {
  ASSIGN_OR_RETURN(const json::value* content, message.Get("content"));
  if (content->is_string()) return std::string(content->get_string());
  if (!content->is_array()) {
    return WrongJson(message.PathOf("content"), "a string or an array of text parts", *content);
  }
  std::string text;
  for (const json::value& item : content->get_array()) {
    ASSIGN_OR_RETURN(Fields part, Fields::Of(item, message.PathOf("content")));
    ASSIGN_OR_RETURN(const std::string type, part.String("type"));
    if (type != "text") return UnsupportedJson(part.PathOf("type"), "\"text\"", *part.Find("type"));
    ASSIGN_OR_RETURN(const std::string piece, part.String("text"));
    text += piece;
  }
  return text;
}

// A model trained on plain text has no chat markers: turns are lines "role: text", and the
// reply ends where the next user turn would begin.
absl::Status ReadMessages(Fields& fields, const models::Tokenizer& tokenizer, Call& call) {
  ASSIGN_OR_RETURN(const json::array* messages, fields.Array("messages"));
  if (messages->empty()) return absl::InvalidArgumentError("messages: must not be empty");
  for (size_t i = 0; i < messages->size(); ++i) {
    ASSIGN_OR_RETURN(Fields message, Fields::Of((*messages)[i], absl::StrCat("messages[", i, "]")));
    ASSIGN_OR_RETURN(const std::string role, message.String("role"));
    if (role != "system" && role != "developer" && role != "user" && role != "assistant") {
      return UnsupportedJson(message.PathOf("role"), "system, user and assistant",
                             *message.Find("role"));
    }
    ASSIGN_OR_RETURN(const std::string text, MessageText(message));
    // A reply begins with the space after the colon, and comes back so.
    absl::StrAppend(&call.prompt_text, role, text.starts_with(' ') ? ":" : ": ", text, "\n");
  }
  call.prompt_text += "assistant:";
  call.generate.stop.push_back("\nuser:");
  ASSIGN_OR_RETURN(call.generate.prompt, tokenizer.Encode(call.prompt_text, {}), _ << "messages");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Call> ParseCompletion(std::string_view body, const models::Tokenizer& tokenizer,
                                     const CallDefaults& defaults) {
  ASSIGN_OR_RETURN(const json::value value, ParseBody(body));
  ASSIGN_OR_RETURN(Fields fields, Fields::Of(value, ""), _ << "body");
  Call call;
  RETURN_IF_ERROR(ReadCommon(fields, defaults, call));
  RETURN_IF_ERROR(ReadPrompt(fields, tokenizer, call));
  if (fields.Find("max_tokens") != nullptr) {
    ASSIGN_OR_RETURN(call.generate.max_tokens, fields.Integer("max_tokens", 0, kMostTokens));
  }
  ASSIGN_OR_RETURN(call.echo, fields.Bool("echo", false));
  if (fields.Find("logprobs") != nullptr) {
    ASSIGN_OR_RETURN(call.generate.top_logprobs, fields.Integer("logprobs", 0, kMostTopLogprobs));
    call.generate.prompt_logprobs = call.echo;
  }
  RETURN_IF_ERROR(fields.Done());
  return call;
}

absl::StatusOr<Call> ParseChat(std::string_view body, const models::Tokenizer& tokenizer,
                               const CallDefaults& defaults) {
  ASSIGN_OR_RETURN(const json::value value, ParseBody(body));
  ASSIGN_OR_RETURN(Fields fields, Fields::Of(value, ""), _ << "body");
  Call call;
  call.chat = true;
  RETURN_IF_ERROR(ReadCommon(fields, defaults, call));
  RETURN_IF_ERROR(ReadMessages(fields, tokenizer, call));
  call.generate.max_tokens = defaults.chat_max_tokens;
  for (const char* name : {"max_tokens", "max_completion_tokens"}) {
    if (fields.Find(name) == nullptr) continue;
    ASSIGN_OR_RETURN(call.generate.max_tokens, fields.Integer(name, 1, kMostTokens));
  }
  ASSIGN_OR_RETURN(const bool logprobs, fields.Bool("logprobs", false));
  if (logprobs) call.generate.top_logprobs = 0;
  if (fields.Find("top_logprobs") != nullptr) {
    ASSIGN_OR_RETURN(const int32_t top, fields.Integer("top_logprobs", 0, kMostTopLogprobs));
    if (!logprobs) {
      return absl::InvalidArgumentError("top_logprobs: only allowed when logprobs is true");
    }
    call.generate.top_logprobs = top;
  }
  RETURN_IF_ERROR(fields.Done());
  return call;
}

}  // namespace plinth::infer
