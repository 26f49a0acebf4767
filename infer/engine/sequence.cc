#include "plinth/infer/engine/sequence.h"

#include <algorithm>
#include <utility>

#include "plinth/hardware/base/check.h"

namespace plinth::infer {

Sequence::Sequence(RequestId id, GenerateRequest request, GenerateCallback callback,
                   std::unique_ptr<TextDecoder> decoder, const SequenceLimits& limits,
                   KvCache* cache)
    : id_(id),
      request_(std::move(request)),
      callback_(std::move(callback)),
      decoder_(std::move(decoder)),
      limits_(limits),
      stop_(request_.stop),
      tokens_(request_.prompt),
      pages_(cache) {}

bool Sequence::DrawsToken() const {
  return step_tokens == pending() && reply_tokens() < request_.max_tokens;
}

std::vector<int64_t> Sequence::WantedRows() const {
  std::vector<int64_t> rows;
  if (request_.prompt_logprobs) {
    // The row of token p scores token p + 1.
    const int64_t prompt = static_cast<int64_t>(request_.prompt.size());
    const int64_t begin = std::max(cached_, scored_ - 1);
    const int64_t end = std::min(cached_ + step_tokens, prompt - 1);
    for (int64_t p = begin; p < end; ++p) rows.push_back(p - cached_);
  }
  if (DrawsToken()) rows.push_back(step_tokens - 1);
  return rows;
}

std::optional<Logprobs> Sequence::LogprobsOf(std::span<const float> logits, int32_t id) const {
  if (!request_.top_logprobs.has_value()) return std::nullopt;
  return ComputeLogprobs(logits, id, *request_.top_logprobs);
}

void Sequence::Advance(std::span<const std::span<const float>> logits,
                       std::vector<GenerateEvent>& events) {
  const bool draws = DrawsToken();
  CHECK_GE(logits.size(), draws ? 1u : 0u);
  const size_t prompt_rows = logits.size() - (draws ? 1 : 0);
  cached_ += step_tokens;
  GenerateEvent prompt_event;
  if (request_.prompt_logprobs && scored_ == 0) {
    prompt_event.prompt.push_back({.id = tokens_[0]});
    scored_ = 1;
  }
  for (size_t i = 0; i < prompt_rows; ++i) {
    const int32_t id = tokens_[static_cast<size_t>(scored_++)];
    prompt_event.prompt.push_back({.id = id, .logprobs = LogprobsOf(logits[i], id)});
  }
  if (!prompt_event.prompt.empty()) events.push_back(std::move(prompt_event));
  if (draws) {
    events.push_back(Draw(logits.back()));
  } else if (pending() == 0) {  // max_tokens is 0: the prompt was all there was to do
    GenerateEvent event;
    Finish(FinishReason::kLength, event);
    events.push_back(std::move(event));
  }
}

GenerateEvent Sequence::Draw(std::span<const float> logits) {
  GenerateEvent event;
  const int32_t id = SampleToken(logits, request_.sampling, static_cast<int64_t>(tokens_.size()));
  const bool ends = std::ranges::find(limits_.end_ids, id) != limits_.end_ids.end();
  if (ends && !request_.ignore_end) {
    Finish(FinishReason::kStop, event);
    return event;
  }
  tokens_.push_back(id);
  event.token = TokenEvent{.id = id, .logprobs = LogprobsOf(logits, id)};
  if (decoder_ != nullptr) event.text = stop_.Push(decoder_->Push(id));
  if (stop_.stopped()) {
    event.finish = FinishReason::kStop;
  } else if (reply_tokens() == request_.max_tokens ||
             static_cast<int64_t>(tokens_.size()) == limits_.max_tokens) {
    Finish(FinishReason::kLength, event);
  }
  return event;
}

void Sequence::Finish(FinishReason reason, GenerateEvent& event) {
  if (decoder_ != nullptr) event.text += stop_.Push(decoder_->Flush());
  event.text += stop_.Flush();
  event.finish = stop_.stopped() ? FinishReason::kStop : reason;
}

void Sequence::Preempt() {
  pages_.Release();
  cached_ = 0;
  step_tokens = 0;
}

}  // namespace plinth::infer
