// Engine: many generation requests through one model, computed together.
//
// One thread runs steps. A step is one forward pass over the next tokens of every running
// sequence: one token for those that decode, a chunk of the prompt for those that are being
// read in. Sequences join and leave between steps (continuous batching), keep keys and
// values in pages (infer/kv), and wait in order of arrival when the batch is full. When
// pages run out, the youngest sequence gives its pages back and is computed again later:
// the oldest always goes on, so nothing deadlocks, and its reply is the same.
//
// A reply is bit-equal whether its request runs alone or in any batch.
#ifndef PLINTH_INFER_ENGINE_ENGINE_H_
#define PLINTH_INFER_ENGINE_ENGINE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "plinth/hardware/device/device.h"
#include "plinth/hardware/tensor/dtype.h"
#include "plinth/hardware/threading/threads.h"
#include "plinth/infer/engine/request.h"
#include "plinth/infer/engine/text_decoder.h"
#include "plinth/models/nn/model.h"

namespace plinth::infer {

struct EngineOptions {
  int64_t max_batch = 16;     // sequences computed together; > 0
  int64_t max_queue = 256;    // requests that may wait beyond those; >= 0
  int64_t kv_tokens = 0;      // tokens kept by all sequences; 0: max_batch * max_positions
  int64_t page_tokens = 16;   // tokens of one page; > 0
  int64_t step_tokens = 256;  // tokens of one forward pass at most; >= max_batch
  // Weights of matrix products are packed once to this type: kF32 or kBf16.
  DType weights = DType::kF32;
  std::vector<int32_t> end_ids;     // tokens that end a reply (unless ignore_end)
  TextDecoderFactory text_decoder;  // absent: events have no text, `stop` is refused
};

struct EngineStats {
  int64_t running = 0;  // sequences in the batch
  int64_t waiting = 0;
  int64_t free_pages = 0;
  int64_t total_pages = 0;
  // Counters since the start.
  int64_t requests = 0;       // accepted
  int64_t rejected = 0;       // queue full
  int64_t finished = 0;       // any reason
  int64_t prompt_tokens = 0;  // read in (again after a preemption)
  int64_t generated_tokens = 0;
  int64_t steps = 0;
  int64_t preemptions = 0;
  // How long the present step has been running; 0 when idle. A health check compares it
  // with its deadline.
  double step_seconds = 0;
};

// Thread-safe.
class Engine {
 public:
  // Borrows all three, which outlive the engine: a model whose parameters lie on `device`,
  // and a team that only this engine uses while it lives. Packs weights and allocates the
  // cache: kResourceExhausted states bytes. kInvalidArgument lists bad options.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(const models::LanguageModel& model,
                                                        Device& device, Threads& threads,
                                                        EngineOptions options);
  // Ends every request (kCancelled), then the thread.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Returns at once; events follow, possibly before the id is returned.
  // kInvalidArgument: a bad field or an over-long prompt, with both numbers.
  // kResourceExhausted: max_queue requests wait already. No event follows an error.
  absl::StatusOr<RequestId> Submit(GenerateRequest request, GenerateCallback callback);
  // The request ends with kCancelled at the next step boundary, unless it has ended before.
  void Cancel(RequestId id);

  // Prompt and reply of one request at most: the model's positions, or the whole cache.
  int64_t max_tokens() const;
  EngineStats stats() const;

 private:
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace plinth::infer

#endif  // PLINTH_INFER_ENGINE_ENGINE_H_
