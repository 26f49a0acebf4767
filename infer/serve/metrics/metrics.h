// ServeMetrics: what Prometheus and a health check are told about a server.
#ifndef PLINTH_INFER_SERVE_METRICS_METRICS_H_
#define PLINTH_INFER_SERVE_METRICS_METRICS_H_

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "plinth/infer/engine/engine.h"
#include "plinth/infer/engine/request.h"

namespace plinth::infer {

// Borrows the engine. Thread-safe. Answers without waiting for the engine's thread.
class ServeMetrics {
 public:
  // A step that runs longer than `stuck_after` makes the server unhealthy.
  explicit ServeMetrics(const Engine& engine, absl::Duration stuck_after = absl::Seconds(30));
  ~ServeMetrics();

  // `route` is one of a few fixed texts, never what a client sent.
  void CountHttp(const std::string& route, int status);
  void ObserveFirstToken(absl::Duration since_request);
  void ObserveNextToken(absl::Duration since_last);
  void ObserveEnd(FinishReason reason);
  void SetDraining() { draining_ = true; }
  bool draining() const { return draining_; }

  // Prometheus' text format, version 0.0.4.
  std::string Text() const;
  // kUnavailable when requests would not be answered: the engine's step hangs, its last
  // request failed, or the server is about to stop.
  absl::Status Health() const;

 private:
  class Impl;
  const Engine& engine_;
  const absl::Duration stuck_after_;
  const std::unique_ptr<Impl> impl_;
  std::atomic<bool> failed_{false}, draining_{false};
};

}  // namespace plinth::infer

#endif  // PLINTH_INFER_SERVE_METRICS_METRICS_H_
