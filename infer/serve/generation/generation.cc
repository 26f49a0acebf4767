#include "plinth/infer/serve/generation/generation.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "absl/time/clock.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::infer {

struct Generation::Queue {
  struct Entry {
    GenerateEvent event;
    absl::Time arrived;
  };

  std::mutex mutex;
  std::condition_variable filled;
  std::vector<Entry> entries;  // guarded by mutex
};

Generation::Generation(Engine& engine, ServeMetrics& metrics)
    : engine_(engine), metrics_(metrics), queue_(std::make_shared<Queue>()), start_(absl::Now()) {}

absl::StatusOr<std::unique_ptr<Generation>> Generation::Start(Engine& engine,
                                                              GenerateRequest request,
                                                              ServeMetrics& metrics) {
  std::unique_ptr<Generation> generation(new Generation(engine, metrics));
  const auto deliver = [queue = generation->queue_](const GenerateEvent& event) {
    {
      const std::lock_guard lock(queue->mutex);
      queue->entries.push_back({event, absl::Now()});
    }
    queue->filled.notify_one();
  };
  generation->ended_ = true;  // until there is something to cancel
  ASSIGN_OR_RETURN(generation->id_, engine.Submit(std::move(request), deliver));
  generation->ended_ = false;
  return generation;
}

Generation::~Generation() {
  if (!ended_) engine_.Cancel(id_);
}

std::vector<GenerateEvent> Generation::Wait(absl::Duration patience) {
  std::vector<Queue::Entry> entries;
  {
    std::unique_lock lock(queue_->mutex);
    queue_->filled.wait_for(lock, absl::ToChronoNanoseconds(patience),
                            [this] { return !queue_->entries.empty(); });
    entries.swap(queue_->entries);
  }
  std::vector<GenerateEvent> events;
  for (Queue::Entry& entry : entries) {
    if (entry.event.token.has_value()) {
      const bool first = last_token_ == absl::InfinitePast();
      if (first) {
        metrics_.ObserveFirstToken(entry.arrived - start_);
      } else {
        metrics_.ObserveNextToken(entry.arrived - last_token_);
      }
      last_token_ = entry.arrived;
    }
    if (entry.event.finish != FinishReason::kNone) {
      ended_ = true;
      metrics_.ObserveEnd(entry.event.finish);
    }
    events.push_back(std::move(entry.event));
  }
  return events;
}

}  // namespace plinth::infer
