// InferServer: everything that a served model answers on its ports.
//
//   POST /v1/completions, /v1/chat/completions     openai/api.h
//   GET  /v1/models, /v1/models/<name>
//   GET  /, /page/<file>                           the web page
//   GET  /healthz, /metrics                        metrics/metrics.h
//   GET  /training/metrics?offset=N                metrics/training_log.h
//   gRPC plinth.Generate                           grpc/generate.proto
#ifndef PLINTH_INFER_SERVE_SERVER_H_
#define PLINTH_INFER_SERVE_SERVER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plinth/infer/engine/engine.h"
#include "plinth/infer/serve/grpc/service.h"
#include "plinth/infer/serve/http/server.h"
#include "plinth/infer/serve/metrics/metrics.h"
#include "plinth/infer/serve/openai/api.h"
#include "plinth/models/tokenizer/tokenizer.h"

namespace plinth::infer {

struct InferServerOptions {
  http::ServerOptions http;
  std::optional<GrpcOptions> grpc;  // absent: no gRPC
  std::string model_name;
  std::string metrics_run;                         // training run that the page shows; empty: none
  uint64_t seed = 0;                               // of requests without one
  absl::Duration stuck_after = absl::Seconds(30);  // ServeMetrics
};

// Thread-safe. Borrows the engine and the tokenizer.
class InferServer {
 public:
  // Answers from then on. kUnavailable: a port cannot be had.
  static absl::StatusOr<std::unique_ptr<InferServer>> Start(Engine& engine,
                                                            const models::Tokenizer& tokenizer,
                                                            InferServerOptions options);
  // Ends what still runs, then the listeners.
  ~InferServer();

  int http_port() const { return http_->port(); }
  int grpc_port() const { return grpc_ == nullptr ? 0 : grpc_->port(); }

  // Refuses new work (503, UNAVAILABLE) and waits for the running replies, at most for
  // `patience`. False when some are still running.
  bool Drain(absl::Duration patience);

 private:
  InferServer(Engine& engine, const models::Tokenizer& tokenizer, InferServerOptions options);
  void Handle(const http::Request& request, http::Response& response);
  void Route(const http::Request& request, http::Response& response, std::string& route);
  void Health(http::Response& response);
  void TrainingMetrics(const http::Request& request, http::Response& response);

  const InferServerOptions options_;
  ServeMetrics metrics_;
  OpenAiApi openai_;
  std::atomic<int64_t> active_{0};  // HTTP requests being answered
  // Last: their threads use everything above.
  std::unique_ptr<GrpcServer> grpc_;
  std::unique_ptr<http::Server> http_;
};

}  // namespace plinth::infer

#endif  // PLINTH_INFER_SERVE_SERVER_H_
