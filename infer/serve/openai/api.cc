#include "plinth/infer/serve/openai/api.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "plinth/hardware/base/rng.h"
#include "plinth/infer/serve/generation/generation.h"

namespace plinth::infer {
namespace {

namespace json = boost::json;

constexpr char kJson[] = "application/json";
constexpr char kModelsPath[] = "/v1/models/";
// How often a handler that waits for the engine looks whether its client is still there.
constexpr absl::Duration kPatience = absl::Milliseconds(100);

std::string ServerSentEvent(const std::string& data) { return "data: " + data + "\n\n"; }

// "%20" and its like; anything else stays as it is.
std::string PercentDecoded(const std::string& text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    uint32_t byte = 0;
    if (text[i] == '%' && absl::SimpleHexAtoi(text.substr(i + 1, 2), &byte)) {
      decoded.push_back(static_cast<char>(byte));
      i += 2;
    } else {
      decoded.push_back(text[i]);
    }
  }
  return decoded;
}

json::object Describe(const std::string& model, int64_t created) {
  return {{"id", model}, {"object", "model"}, {"created", created}, {"owned_by", "plinth"}};
}

// Takes events until the last. The status of one that has no reply: failed, or cancelled
// because the engine stops. nullopt when the client has gone.
template <typename TakeEvent>
std::optional<absl::Status> Follow(Generation& generation, http::Response& response,
                                   TakeEvent take) {
  while (true) {
    const std::vector<GenerateEvent> events = generation.Wait(kPatience);
    if (response.Gone()) return std::nullopt;
    for (const GenerateEvent& event : events) {
      if (event.finish == FinishReason::kCancelled) {
        return absl::UnavailableError("the server is stopping");
      }
      if (event.finish == FinishReason::kError) return event.error;
      if (!take(event)) return std::nullopt;
      if (event.finish != FinishReason::kNone) return absl::OkStatus();
    }
  }
}

void ReplyWhole(Generation& generation, ReplyWriter& writer, http::Response& response) {
  const std::optional<absl::Status> end =
      Follow(generation, response, [&writer](const GenerateEvent& event) {
        writer.Add(event);
        return true;
      });
  if (!end.has_value()) return;
  if (end->ok()) {
    response.Send(200, kJson, writer.Whole());
  } else {
    SendError(response, *end);
  }
}

void ReplyStream(const Call& call, Generation& generation, ReplyWriter& writer,
                 http::Response& response) {
  response.StartStream("text/event-stream; charset=utf-8");
  if (const auto first = writer.FirstChunk()) response.Write(ServerSentEvent(*first));
  const std::optional<absl::Status> end =
      Follow(generation, response, [&writer, &response](const GenerateEvent& event) {
        writer.Add(event);
        const std::optional<std::string> chunk = writer.TakeChunk();
        return !chunk.has_value() || response.Write(ServerSentEvent(*chunk));
      });
  if (!end.has_value()) return;
  if (!end->ok()) {
    response.Write(ServerSentEvent(ErrorFor(*end).body));
  } else {
    if (call.include_usage) response.Write(ServerSentEvent(writer.UsageChunk()));
    response.Write(ServerSentEvent("[DONE]"));
  }
  response.Finish();
}

}  // namespace

void SendError(http::Response& response, const absl::Status& status, const std::string& code) {
  const ErrorReply reply = ErrorFor(status, code);
  http::Headers headers;
  if (reply.status == 429) headers.emplace_back("Retry-After", "1");
  response.Send(reply.status, kJson, reply.body, headers);
}

OpenAiApi::OpenAiApi(Engine& engine, const models::Tokenizer& tokenizer, ServeMetrics& metrics,
                     OpenAiOptions options)
    : engine_(engine),
      tokenizer_(tokenizer),
      metrics_(metrics),
      options_(std::move(options)),
      start_seconds_(absl::ToUnixSeconds(absl::Now())) {}

CallDefaults OpenAiApi::NextDefaults() {
  return {.chat_max_tokens = engine_.max_tokens(),
          .seed = RandomBits(options_.seed, 0, requests_.fetch_add(1))};
}

void OpenAiApi::Completions(const http::Request& request, http::Response& response) {
  Answer(ParseCompletion(request.body, tokenizer_, NextDefaults()), response);
}

void OpenAiApi::Chat(const http::Request& request, http::Response& response) {
  Answer(ParseChat(request.body, tokenizer_, NextDefaults()), response);
}

void OpenAiApi::Answer(const absl::StatusOr<Call>& parsed, http::Response& response) {
  if (metrics_.draining()) {
    return SendError(response, absl::UnavailableError("the server is stopping"));
  }
  if (!parsed.ok()) return SendError(response, parsed.status());
  if (!parsed->model.empty() && parsed->model != options_.model_name) {
    return SendError(response,
                     absl::NotFoundError(absl::StrCat("model: \"", parsed->model,
                                                      "\" is not served here, only \"",
                                                      options_.model_name, "\"")),
                     "model_not_found");
  }
  Reply(*parsed, response);
}

void OpenAiApi::Reply(const Call& call, http::Response& response) {
  const absl::Time now = absl::Now();
  const absl::StatusOr<std::unique_ptr<Generation>> generation =
      Generation::Start(engine_, call.generate, metrics_);
  if (!generation.ok()) return SendError(response, generation.status());
  ReplyWriter writer(
      call, tokenizer_,
      {.id = absl::StrFormat(
           "%s-%016x", call.chat ? "chatcmpl" : "cmpl",
           RandomBits(static_cast<uint64_t>(absl::ToUnixNanos(now)), 1, requests_.fetch_add(1))),
       .model = options_.model_name,
       .created = absl::ToUnixSeconds(now)});
  if (call.stream) {
    ReplyStream(call, **generation, writer, response);
  } else {
    ReplyWhole(**generation, writer, response);
  }
}

void OpenAiApi::Models(const http::Request&, http::Response& response) {
  const json::object list{{"object", "list"},
                          {"data", json::array{Describe(options_.model_name, start_seconds_)}}};
  response.Send(200, kJson, json::serialize(list));
}

void OpenAiApi::Model(const http::Request& request, http::Response& response) {
  const std::string name = PercentDecoded(request.path.substr(sizeof(kModelsPath) - 1));
  if (name != options_.model_name) {
    return SendError(response, absl::NotFoundError("model: this one is not served here"),
                     "model_not_found");
  }
  response.Send(200, kJson, json::serialize(Describe(options_.model_name, start_seconds_)));
}

}  // namespace plinth::infer
