#include "plinth/infer/engine/engine.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/device/allocator.h"
#include "plinth/infer/engine/sequence.h"
#include "plinth/infer/engine/step_batch.h"
#include "plinth/infer/kv/kv_cache.h"
#include "plinth/models/nn/eager_ops.h"

namespace plinth::infer {
namespace {

using Clock = std::chrono::steady_clock;
using SequencePtr = std::unique_ptr<Sequence>;

constexpr size_t kMaxStops = 16;

// Violations of a request or of options, all reported at once.
class Problems {
 public:
  void Require(bool ok, const std::string& text) {
    if (!ok) list_.push_back(text);
  }
  absl::Status ToStatus() const {
    if (list_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrJoin(list_, "; "));
  }

 private:
  std::vector<std::string> list_;
};

absl::Status ValidateOptions(const EngineOptions& o) {
  Problems problems;
  problems.Require(o.max_batch > 0, absl::StrCat("max_batch must be > 0, got ", o.max_batch));
  problems.Require(o.max_queue >= 0, absl::StrCat("max_queue must be >= 0, got ", o.max_queue));
  problems.Require(o.kv_tokens >= 0, absl::StrCat("kv_tokens must be >= 0, got ", o.kv_tokens));
  problems.Require(o.page_tokens > 0, absl::StrCat("page_tokens must be > 0, got ", o.page_tokens));
  problems.Require(o.step_tokens >= o.max_batch,
                   absl::StrCat("step_tokens must be at least max_batch (", o.max_batch, "), got ",
                                o.step_tokens));
  problems.Require(
      o.weights == DType::kF32 || o.weights == DType::kBf16,
      absl::StrCat("weights must be f32 or bf16, got ", std::string(DTypeName(o.weights))));
  return problems.ToStatus();
}

absl::Status ValidateRequest(const GenerateRequest& request, int64_t vocab_size, int64_t max_tokens,
                             bool has_text) {
  Problems problems;
  const int64_t prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t reply = std::min<int64_t>(request.max_tokens, 1);
  problems.Require(prompt > 0, "the prompt is empty");
  problems.Require(request.max_tokens >= 0,
                   absl::StrCat("max_tokens must be >= 0, got ", request.max_tokens));
  problems.Require(
      prompt + reply <= max_tokens,
      absl::StrCat("the prompt has ", prompt, " tokens, at most ", max_tokens - reply, " fit"));
  const auto bad = std::ranges::find_if(
      request.prompt, [vocab_size](int32_t id) { return id < 0 || id >= vocab_size; });
  if (bad != request.prompt.end()) {
    problems.Require(false, absl::StrCat("prompt token ", bad - request.prompt.begin(),
                                         " must be in [0, ", vocab_size, "), got ", *bad));
  }
  const absl::Status sampling = ValidateSampling(request.sampling);
  problems.Require(sampling.ok(), std::string(sampling.message()));
  problems.Require(
      request.stop.size() <= kMaxStops,
      absl::StrCat("at most ", kMaxStops, " stop texts are allowed, got ", request.stop.size()));
  problems.Require(std::ranges::find(request.stop, "") == request.stop.end(),
                   "a stop text is empty");
  problems.Require(request.stop.empty() || has_text,
                   "stop texts need a tokenizer, and this engine has none");
  problems.Require(
      request.top_logprobs.value_or(0) >= 0,
      absl::StrCat("top_logprobs must be >= 0, got ", request.top_logprobs.value_or(0)));
  problems.Require(!request.prompt_logprobs || request.top_logprobs.has_value(),
                   "prompt_logprobs needs top_logprobs");
  return problems.ToStatus();
}

}  // namespace

class Engine::Impl {
 public:
  Impl(const models::LanguageModel& model, Device& device, Threads& threads, EngineOptions options)
      : model_(model),
        options_(std::move(options)),
        allocator_(&device),
        stream_(device.CreateStream()),
        ops_({.stream = stream_.get(), .threads = &threads, .scratch = &allocator_},
             options_.weights) {}

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Start();
  absl::StatusOr<RequestId> Submit(GenerateRequest request, GenerateCallback callback);
  void Cancel(RequestId id);
  int64_t max_tokens() const { return limits_.max_tokens; }
  EngineStats stats() const;

 private:
  struct News {
    Sequence* sequence;
    GenerateEvent event;
  };

  absl::Status PackWeights();
  void Run();
  bool WaitForWork();
  void TakeCancelled();
  void Admit();
  void Plan();
  bool ReserveOrPreempt(size_t index);
  void Step();
  absl::Status Forward();
  void Advance(std::vector<News>& news);
  void EndAll(FinishReason reason, const absl::Status& error, std::vector<News>& news);
  void Publish(int64_t generated);
  void Deliver(const std::vector<News>& news);

  const models::LanguageModel& model_;
  const EngineOptions options_;
  SequenceLimits limits_;

  // Each uses those above it. The engine's thread alone touches these once it runs.
  CachingAllocator allocator_;
  std::unique_ptr<Stream> stream_;
  models::EagerOps ops_;
  std::unique_ptr<KvCache> cache_;
  StepBatch batch_;
  std::vector<float> logits_;         // host copy of the step's output rows
  std::vector<SequencePtr> running_;  // in order of arrival
  std::vector<SequencePtr> ended_;    // of this step, until their events are delivered
  int64_t steps_ = 0, prompt_tokens_ = 0, preemptions_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_.
  std::deque<SequencePtr> waiting_;  // preempted ones in front
  std::unordered_set<RequestId> live_, cancelled_;
  RequestId next_id_ = 1;
  bool stopping_ = false;
  EngineStats stats_;
  Clock::time_point step_start_;
  bool in_step_ = false;

  std::thread thread_;
};

absl::Status Engine::Impl::Start() {
  const models::ModelDims& dims = model_.dims();
  for (const models::Parameter* p : model_.parameters()) CHECK(!p->value().empty()) << p->name();
  const int64_t page = options_.page_tokens;
  const int64_t sequence_pages = (dims.max_positions + page - 1) / page;
  const int64_t pages = options_.kv_tokens > 0 ? (options_.kv_tokens + page - 1) / page
                                               : options_.max_batch * sequence_pages;
  ASSIGN_OR_RETURN(cache_,
                   KvCache::Create(dims, {.pages = pages, .page_tokens = page}, allocator_));
  limits_ = {.max_tokens = std::min(dims.max_positions, pages * page), .end_ids = options_.end_ids};
  RETURN_IF_ERROR(PackWeights());
  Threads::LeaveTeam();  // from here on the engine's own thread computes
  Publish(0);
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

// One throw-away token makes EagerOps pack every weight, so that no request waits for it.
absl::Status Engine::Impl::PackWeights() {
  const std::vector<int32_t> zero = {0}, starts = {0, 1};
  const Tensor logits = model_.Logits(ops_, {.ids = zero, .positions = zero, .seq_starts = starts});
  return stream_->Synchronize();
}

absl::StatusOr<RequestId> Engine::Impl::Submit(GenerateRequest request, GenerateCallback callback) {
  const bool has_text = options_.text_decoder != nullptr;
  RETURN_IF_ERROR(ValidateRequest(request, model_.dims().vocab_size, max_tokens(), has_text));
  std::unique_ptr<TextDecoder> decoder = has_text ? options_.text_decoder() : nullptr;
  RequestId id;
  {
    const std::lock_guard lock(mutex_);
    if (static_cast<int64_t>(live_.size()) >= options_.max_batch + options_.max_queue) {
      ++stats_.rejected;
      return absl::ResourceExhaustedError(absl::StrCat("the queue is full: ", options_.max_batch,
                                                       " requests run and ", options_.max_queue,
                                                       " wait; try again later"));
    }
    id = next_id_++;
    ++stats_.requests;
    live_.insert(id);
    waiting_.push_back(std::make_unique<Sequence>(id, std::move(request), std::move(callback),
                                                  std::move(decoder), limits_, cache_.get()));
  }
  wake_.notify_one();
  return id;
}

void Engine::Impl::Cancel(RequestId id) {
  {
    const std::lock_guard lock(mutex_);
    if (!live_.contains(id)) return;
    cancelled_.insert(id);
  }
  wake_.notify_one();
}

EngineStats Engine::Impl::stats() const {
  const std::lock_guard lock(mutex_);
  EngineStats stats = stats_;
  stats.waiting = static_cast<int64_t>(waiting_.size());
  if (in_step_) {
    stats.step_seconds = std::chrono::duration<double>(Clock::now() - step_start_).count();
  }
  return stats;
}

void Engine::Impl::Run() {
  while (WaitForWork()) {
    TakeCancelled();
    Admit();
    Step();
  }
  {
    const std::lock_guard lock(mutex_);
    for (SequencePtr& sequence : waiting_) running_.push_back(std::move(sequence));
    waiting_.clear();
  }
  std::vector<News> news;
  EndAll(FinishReason::kCancelled, absl::OkStatus(), news);
  Publish(0);
  Deliver(news);
}

// False when the engine ends.
bool Engine::Impl::WaitForWork() {
  std::unique_lock lock(mutex_);
  in_step_ = false;
  const auto ready = [this] { return stopping_ || !waiting_.empty() || !running_.empty(); };
  if (!ready()) {
    Threads::LeaveTeam();
    wake_.wait(lock, ready);
  }
  in_step_ = !stopping_;
  step_start_ = Clock::now();
  return !stopping_;
}

void Engine::Impl::TakeCancelled() {
  std::vector<News> news;
  {
    const std::lock_guard lock(mutex_);
    if (cancelled_.empty()) return;
    const auto take = [&](auto& sequences) {
      std::erase_if(sequences, [&](SequencePtr& sequence) {
        if (!cancelled_.contains(sequence->id())) return false;
        sequence->pages().Release();
        news.push_back({sequence.get(), {.finish = FinishReason::kCancelled}});
        ended_.push_back(std::move(sequence));
        return true;
      });
    };
    take(running_);
    take(waiting_);
    cancelled_.clear();
  }
  Publish(0);
  Deliver(news);
}

// Lets waiting sequences in, oldest first, while the batch has room and the cache has pages
// for all their tokens and for the next page of everyone who runs.
void Engine::Impl::Admit() {
  const std::lock_guard lock(mutex_);
  while (!waiting_.empty() && static_cast<int64_t>(running_.size()) < options_.max_batch) {
    Sequence& next = *waiting_.front();
    const int64_t tokens = static_cast<int64_t>(next.tokens().size());
    const int64_t spare = static_cast<int64_t>(running_.size());
    if (cache_->free_pages() < cache_->PagesFor(tokens) + spare) return;
    CHECK(next.pages().Reserve(tokens));
    prompt_tokens_ += tokens;
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

// Shares the step's tokens: first one for each sequence that decodes, the rest for those
// that are read in, oldest first.
void Engine::Impl::Plan() {
  int64_t budget = options_.step_tokens;
  for (const SequencePtr& sequence : running_) {
    sequence->step_tokens = sequence->pending() == 1 ? 1 : 0;
    budget -= sequence->step_tokens;
  }
  for (const SequencePtr& sequence : running_) {
    if (sequence->step_tokens != 0) continue;
    sequence->step_tokens = std::min(sequence->pending(), budget);
    budget -= sequence->step_tokens;
  }
  size_t index = 0;
  while (index < running_.size() && ReserveOrPreempt(index)) ++index;
}

// Gets the pages for a sequence's step, from the youngest ones if need be. False when
// the sequence itself was the youngest. The first in running_ always succeeds: a sequence
// alone fits in the cache.
bool Engine::Impl::ReserveOrPreempt(size_t index) {
  Sequence& sequence = *running_[index];
  while (!sequence.pages().Reserve(sequence.cached() + sequence.step_tokens)) {
    SequencePtr youngest = std::move(running_.back());
    running_.pop_back();
    youngest->Preempt();
    ++preemptions_;
    const std::lock_guard lock(mutex_);
    waiting_.push_front(std::move(youngest));
    if (index == running_.size()) return false;
  }
  return true;
}

void Engine::Impl::Step() {
  Plan();
  std::vector<News> news;
  if (!running_.empty()) {
    ++steps_;
    const absl::Status status = Forward();
    if (status.ok()) {
      Advance(news);
    } else {
      EndAll(FinishReason::kError, status, news);
    }
  }
  int64_t generated = 0;
  for (const News& n : news) generated += n.event.token.has_value() ? 1 : 0;
  Publish(generated);
  Deliver(news);
}

absl::Status Engine::Impl::Forward() {
  batch_.Build(running_, *cache_);
  const Tensor logits = model_.Logits(ops_, batch_.batch());
  logits_.resize(static_cast<size_t>(logits.elements()));
  stream_->CopyOut(logits_.data(), logits.view().data, logits.view().bytes());
  return stream_->Synchronize();
}

void Engine::Impl::Advance(std::vector<News>& news) {
  const size_t vocab = static_cast<size_t>(model_.dims().vocab_size);
  std::vector<GenerateEvent> events;
  std::vector<std::span<const float>> rows;
  for (size_t s = 0; s < running_.size(); ++s) {
    rows.clear();
    for (int64_t row = batch_.rows_begin(s); row < batch_.rows_end(s); ++row) {
      rows.emplace_back(logits_.data() + static_cast<size_t>(row) * vocab, vocab);
    }
    events.clear();
    Sequence* sequence = running_[s].get();
    sequence->Advance(rows, events);
    const bool ends = !events.empty() && events.back().finish != FinishReason::kNone;
    for (GenerateEvent& event : events) news.push_back({sequence, std::move(event)});
    if (ends) {
      sequence->pages().Release();
      ended_.push_back(std::move(running_[s]));
    }
  }
  std::erase(running_, nullptr);
}

void Engine::Impl::EndAll(FinishReason reason, const absl::Status& error, std::vector<News>& news) {
  for (SequencePtr& sequence : running_) {
    sequence->pages().Release();
    news.push_back({sequence.get(), {.finish = reason, .error = error}});
    ended_.push_back(std::move(sequence));
  }
  running_.clear();
}

// Makes the state visible before the events that tell of it.
void Engine::Impl::Publish(int64_t generated) {
  const std::lock_guard lock(mutex_);
  for (const SequencePtr& sequence : ended_) {
    live_.erase(sequence->id());
    cancelled_.erase(sequence->id());
  }
  stats_.finished += static_cast<int64_t>(ended_.size());
  stats_.running = static_cast<int64_t>(running_.size());
  stats_.free_pages = cache_->free_pages();
  stats_.total_pages = cache_->total_pages();
  stats_.generated_tokens += generated;
  stats_.prompt_tokens = prompt_tokens_;
  stats_.steps = steps_;
  stats_.preemptions = preemptions_;
}

void Engine::Impl::Deliver(const std::vector<News>& news) {
  for (const News& n : news) n.sequence->Emit(n.event);
  ended_.clear();
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(const models::LanguageModel& model,
                                                       Device& device, Threads& threads,
                                                       EngineOptions options) {
  RETURN_IF_ERROR(ValidateOptions(options)) << "engine";
  auto impl = std::make_unique<Impl>(model, device, threads, std::move(options));
  RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

absl::StatusOr<RequestId> Engine::Submit(GenerateRequest request, GenerateCallback callback) {
  return impl_->Submit(std::move(request), std::move(callback));
}

void Engine::Cancel(RequestId id) { impl_->Cancel(id); }
int64_t Engine::max_tokens() const { return impl_->max_tokens(); }
EngineStats Engine::stats() const { return impl_->stats(); }

}  // namespace plinth::infer
