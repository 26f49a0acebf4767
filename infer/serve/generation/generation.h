// Generation: one request to the engine, its events taken by the thread that answers it.
#ifndef PLINTH_INFER_SERVE_GENERATION_GENERATION_H_
#define PLINTH_INFER_SERVE_GENERATION_GENERATION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plinth/infer/engine/engine.h"
#include "plinth/infer/engine/request.h"
#include "plinth/infer/serve/metrics/metrics.h"

namespace plinth::infer {

// The engine's thread fills a queue, of at most as many events as the request has tokens;
// the owner's thread drains it. Borrows the engine and the metrics.
class Generation {
 public:
  // Errors: Engine::Submit's.
  static absl::StatusOr<std::unique_ptr<Generation>> Start(Engine& engine, GenerateRequest request,
                                                           ServeMetrics& metrics);
  // Cancels the request unless it has ended.
  ~Generation();
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  // The events since the last call, in order; waits for one for at most `patience`, then
  // returns none. After the event with a finish reason do not call it again.
  std::vector<GenerateEvent> Wait(absl::Duration patience);

 private:
  struct Queue;
  Generation(Engine& engine, ServeMetrics& metrics);

  Engine& engine_;
  ServeMetrics& metrics_;
  // Shared with the engine's callback, which may outlive this object by a step.
  const std::shared_ptr<Queue> queue_;
  RequestId id_ = 0;
  bool ended_ = false;
  const absl::Time start_;
  absl::Time last_token_ = absl::InfinitePast();
};

}  // namespace plinth::infer

#endif  // PLINTH_INFER_SERVE_GENERATION_GENERATION_H_
