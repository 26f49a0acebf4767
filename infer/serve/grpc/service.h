// GrpcServer: plinth.Generate, gRPC's health service and reflection on one port.
#ifndef PLINTH_INFER_SERVE_GRPC_SERVICE_H_
#define PLINTH_INFER_SERVE_GRPC_SERVICE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "plinth/infer/engine/engine.h"
#include "plinth/infer/serve/metrics/metrics.h"
#include "plinth/models/tokenizer/tokenizer.h"

namespace plinth::infer {

struct GrpcOptions {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: any free port
  std::string model_name;
  uint64_t seed = 0;  // of requests that bring none; each draws another from it
};

// gRPC's refusal of a larger message is RESOURCE_EXHAUSTED and states this number.
inline constexpr int kMaxMessageBytes = 16 << 20;

// Thread-safe. A call occupies one of gRPC's threads until it ends.
class GrpcServer {
 public:
  // Borrows the engine, the tokenizer and the metrics. The health service follows
  // ServeMetrics::Health within a second. kUnavailable: the port cannot be had.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(Engine& engine,
                                                           const models::Tokenizer& tokenizer,
                                                           ServeMetrics& metrics,
                                                           const GrpcOptions& options);
  // Cancels running calls and waits for them.
  virtual ~GrpcServer() = default;
  virtual int port() const = 0;
  // Calls being answered.
  virtual int64_t active() const = 0;
};

}  // namespace plinth::infer

#endif  // PLINTH_INFER_SERVE_GRPC_SERVICE_H_
