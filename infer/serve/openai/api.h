// OpenAiApi: the endpoints below /v1 that OpenAI's clients speak.
#ifndef PLINTH_INFER_SERVE_OPENAI_API_H_
#define PLINTH_INFER_SERVE_OPENAI_API_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "plinth/infer/engine/engine.h"
#include "plinth/infer/serve/http/server.h"
#include "plinth/infer/serve/metrics/metrics.h"
#include "plinth/infer/serve/openai/call.h"
#include "plinth/infer/serve/openai/reply.h"
#include "plinth/models/tokenizer/tokenizer.h"

namespace plinth::infer {

struct OpenAiOptions {
  std::string model_name;  // the one that is served
  uint64_t seed = 0;       // of requests that bring none; each draws another from it
};

// A request is accepted by the engine before any header goes out, so that every refusal has
// its status: 400 for a bad field or an over-long prompt, 404 for another model, 429 for a
// full queue, 503 while the server stops. The work of a client that has gone, with or
// without a stream, ends within about 100 ms and a step.
// Borrows what it is given. Thread-safe; a handler occupies its thread until the reply ends.
class OpenAiApi {
 public:
  OpenAiApi(Engine& engine, const models::Tokenizer& tokenizer, ServeMetrics& metrics,
            OpenAiOptions options);

  void Completions(const http::Request& request, http::Response& response);
  void Chat(const http::Request& request, http::Response& response);
  void Models(const http::Request& request, http::Response& response);
  // /v1/models/<name>
  void Model(const http::Request& request, http::Response& response);

 private:
  CallDefaults NextDefaults();
  void Answer(const absl::StatusOr<Call>& parsed, http::Response& response);
  void Reply(const Call& call, http::Response& response);

  Engine& engine_;
  const models::Tokenizer& tokenizer_;
  ServeMetrics& metrics_;
  const OpenAiOptions options_;
  const int64_t start_seconds_;
  std::atomic<uint64_t> requests_{0};
};

// Sends an error in the API's envelope. Also used for the server's other paths.
void SendError(http::Response& response, const absl::Status& status, const std::string& code = "");

}  // namespace plinth::infer

#endif  // PLINTH_INFER_SERVE_OPENAI_API_H_
