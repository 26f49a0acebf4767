#include "plinth/infer/serve/openai/reply.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <cstddef>
#include <utility>

#include "absl/strings/str_format.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/text/utf8.h"

namespace plinth::infer {
namespace {

namespace json = boost::json;

// JSON has no infinity; what a model calls impossible is this unlikely.
constexpr double kLeastLogprob = -9999;

double Finite(double logprob) { return logprob > kLeastLogprob ? logprob : kLeastLogprob; }

int64_t CountCharacters(std::string_view utf8) {
  return std::ranges::count_if(utf8, [](char c) { return (c & 0xC0) != 0x80; });
}

json::value FinishText(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return nullptr;
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    default:
      CHECK(false) << "an ended request has no reply";
      return nullptr;
  }
}

json::string_view View(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

ReplyWriter::ReplyWriter(const Call& call, const models::Tokenizer& tokenizer, ReplyLabel label)
    : call_(call),
      tokenizer_(tokenizer),
      label_(std::move(label)),
      offsets_(&tokenizer, {.skip_special = true}) {}

void ReplyWriter::Add(const GenerateEvent& event) {
  for (const TokenEvent& token : event.prompt) Keep(token, /*prompt=*/true);
  const bool ends = event.finish != FinishReason::kNone;
  if (!replying_ && (event.token.has_value() || ends)) {
    replying_ = true;
    if (call_.echo) text_ += call_.prompt_text;
    offset_ += CountCharacters(offsets_.Flush());
    released_ = offset_;
  }
  if (event.token.has_value()) {
    ++generated_;
    Keep(*event.token, /*prompt=*/false);
  }
  text_ += event.text;
  released_ += CountCharacters(event.text);
  if (ends) offset_ += CountCharacters(offsets_.Flush());
  finish_ = event.finish;
  end_is_news_ = ends;
}

void ReplyWriter::Keep(const TokenEvent& event, bool prompt) {
  if (!call_.generate.top_logprobs.has_value()) return;
  tokens_.push_back({event, offset_, prompt});
  // An id without a token gives no text to either decoder.
  if (const auto text = offsets_.Push(event.id); text.ok()) offset_ += CountCharacters(*text);
}

size_t ReplyWriter::ReleasedTokens() const {
  // Without a stop text everything is released at the end, so also tokens that give no text.
  if (finish_ != FinishReason::kNone && released_ == offset_) return tokens_.size();
  const auto held = std::ranges::find_if(
      tokens_, [this](const ScoredToken& t) { return !t.prompt && t.offset >= released_; });
  return static_cast<size_t>(held - tokens_.begin());
}

std::string ReplyWriter::Whole() {
  json::object reply = Envelope(/*chunk=*/false);
  reply["choices"] = json::array{Choice(/*chunk=*/false)};
  reply["usage"] = Usage();
  return json::serialize(reply);
}

std::optional<std::string> ReplyWriter::FirstChunk() const {
  if (!call_.chat) return std::nullopt;
  json::object chunk = Envelope(/*chunk=*/true);
  chunk["choices"] = json::array{json::object{{"index", 0},
                                              {"delta", {{"role", "assistant"}, {"content", ""}}},
                                              {"logprobs", nullptr},
                                              {"finish_reason", nullptr}}};
  return json::serialize(chunk);
}

std::optional<std::string> ReplyWriter::TakeChunk() {
  if (text_.empty() && !end_is_news_ && (!replying_ || ReleasedTokens() == 0)) {
    return std::nullopt;
  }
  end_is_news_ = false;
  json::object chunk = Envelope(/*chunk=*/true);
  chunk["choices"] = json::array{Choice(/*chunk=*/true)};
  return json::serialize(chunk);
}

std::string ReplyWriter::UsageChunk() const {
  json::object chunk = Envelope(/*chunk=*/true);
  chunk["choices"] = json::array{};
  chunk["usage"] = Usage();
  return json::serialize(chunk);
}

json::object ReplyWriter::Envelope(bool chunk) const {
  const char* object =
      !call_.chat ? "text_completion" : (chunk ? "chat.completion.chunk" : "chat.completion");
  json::object envelope{
      {"id", label_.id}, {"object", object}, {"created", label_.created}, {"model", label_.model}};
  if (chunk && call_.include_usage) envelope["usage"] = nullptr;
  return envelope;
}

json::object ReplyWriter::Usage() const {
  const int64_t prompt = static_cast<int64_t>(call_.generate.prompt.size());
  return {{"prompt_tokens", prompt},
          {"completion_tokens", generated_},
          {"total_tokens", prompt + generated_}};
}

json::object ReplyWriter::Choice(bool chunk) {
  std::string text = std::exchange(text_, "");
  json::object choice{{"index", 0}};
  if (!call_.chat) {
    choice["text"] = std::move(text);
  } else if (chunk) {
    choice["delta"] = json::object{{"content", std::move(text)}};
  } else {
    choice["message"] = {{"role", "assistant"}, {"content", std::move(text)}, {"refusal", nullptr}};
  }
  choice["logprobs"] = TakeLogprobs();
  choice["finish_reason"] = FinishText(finish_);
  return choice;
}

json::value ReplyWriter::TakeLogprobs() {
  if (!call_.generate.top_logprobs.has_value()) return nullptr;
  const size_t released = ReleasedTokens();
  const std::span<const ScoredToken> scored = std::span(tokens_).first(released);
  json::object logprobs = call_.chat ? ChatLogprobs(scored) : CompletionLogprobs(scored);
  tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(released));
  return logprobs;
}

json::object ReplyWriter::CompletionLogprobs(std::span<const ScoredToken> scored) const {
  json::array tokens, values, tops, offsets;
  for (const ScoredToken& token : scored) {
    tokens.emplace_back(TokenText(token.event.id));
    offsets.emplace_back(token.offset);
    if (!token.event.logprobs.has_value()) {  // the first of a prompt
      values.emplace_back(nullptr);
      tops.emplace_back(nullptr);
      continue;
    }
    const Logprobs& logprobs = *token.event.logprobs;
    values.emplace_back(Finite(logprobs.chosen.logprob));
    json::object top;
    for (const TokenLogprob& other : logprobs.top) {
      top.emplace(TokenText(other.id), Finite(other.logprob));
    }
    top.emplace(TokenText(logprobs.chosen.id), Finite(logprobs.chosen.logprob));
    tops.emplace_back(std::move(top));
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(values)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

json::object ReplyWriter::ChatLogprobs(std::span<const ScoredToken> scored) const {
  json::array content;
  for (const ScoredToken& token : scored) {
    json::object entry = ChatToken(token.event.logprobs->chosen);
    json::array top;
    for (const TokenLogprob& other : token.event.logprobs->top) top.push_back(ChatToken(other));
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

json::object ReplyWriter::ChatToken(const TokenLogprob& token) const {
  json::array bytes;
  for (const char c : tokenizer_.BytesOfId(token.id).value_or("")) {
    bytes.push_back(static_cast<int64_t>(static_cast<unsigned char>(c)));
  }
  return {{"token", TokenText(token.id)},
          {"logprob", Finite(token.logprob)},
          {"bytes", std::move(bytes)}};
}

std::string ReplyWriter::TokenText(int32_t id) const {
  const std::string_view bytes = tokenizer_.BytesOfId(id).value_or("");
  if (ValidUtf8Prefix(bytes) == bytes.size()) return std::string(bytes);
  std::string text = "bytes:";
  for (const char c : bytes) absl::StrAppendFormat(&text, "\\x%02x", c & 0xFF);
  return text;
}

ErrorReply ErrorFor(const absl::Status& status, const std::string& code) {
  ErrorReply reply;
  const char* type = "invalid_request_error";
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kOutOfRange:
      reply.status = 400;
      break;
    case absl::StatusCode::kNotFound:
      reply.status = 404;
      break;
    case absl::StatusCode::kResourceExhausted:
      reply.status = 429;
      type = "rate_limit_error";
      break;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:
      reply.status = 503;
      type = "server_error";
      break;
    default:
      type = "server_error";
  }
  // Messages quote what a client sent, possibly cut within a character.
  const std::string message = ReplaceInvalidUtf8(std::string(status.message()));
  const size_t field_end = message.find_first_not_of(
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.[]");
  json::value param = nullptr;
  if (reply.status < 429 && field_end != std::string::npos && field_end > 0 &&
      message.compare(field_end, 2, ": ") == 0) {
    param = View(std::string_view(message).substr(0, field_end));
  }
  reply.body = json::serialize(
      json::object{{"error",
                    {{"message", message},
                     {"type", type},
                     {"param", param},
                     {"code", code.empty() ? json::value(nullptr) : json::value(View(code))}}}});
  return reply;
}

}  // namespace plinth::infer
