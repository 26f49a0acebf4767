// Sequence: one request on its way through the engine.
#ifndef PLINTH_INFER_ENGINE_SEQUENCE_H_
#define PLINTH_INFER_ENGINE_SEQUENCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "plinth/infer/engine/request.h"
#include "plinth/infer/engine/stop_text.h"
#include "plinth/infer/engine/text_decoder.h"
#include "plinth/infer/kv/kv_cache.h"

namespace plinth::infer {

// Limits that hold for every sequence of an engine.
struct SequenceLimits {
  int64_t max_tokens = 0;  // prompt and reply
  std::vector<int32_t> end_ids;
};

// Owned by the queue or by the engine's thread; used by one thread at a time.
class Sequence {
 public:
  // `limits` outlives the sequence; `decoder` may be null (no text).
  Sequence(RequestId id, GenerateRequest request, GenerateCallback callback,
           std::unique_ptr<TextDecoder> decoder, const SequenceLimits& limits, KvCache* cache);

  RequestId id() const { return id_; }
  // Prompt and reply so far.
  std::span<const int32_t> tokens() const { return tokens_; }
  // Leading tokens whose keys and values are in the cache.
  int64_t cached() const { return cached_; }
  // Tokens to feed before the next one can be drawn; >= 1 while the sequence lives.
  int64_t pending() const { return static_cast<int64_t>(tokens_.size()) - cached_; }
  SequencePages& pages() { return pages_; }
  // Tokens that the present step feeds. Set by the engine when it plans a step.
  int64_t step_tokens = 0;

  // Offsets within the step's tokens whose logits Advance wants, ascending.
  std::vector<int64_t> WantedRows() const;
  // Takes the step's result: one row of logits for each of WantedRows(). Appends this
  // step's events; the last may end the sequence.
  void Advance(std::span<const std::span<const float>> logits, std::vector<GenerateEvent>& events);
  // Gives the pages back; all tokens will be fed again.
  void Preempt();

  void Emit(const GenerateEvent& event) const { callback_(event); }

 private:
  bool DrawsToken() const;
  int64_t reply_tokens() const {
    return static_cast<int64_t>(tokens_.size() - request_.prompt.size());
  }
  std::optional<Logprobs> LogprobsOf(std::span<const float> logits, int32_t id) const;
  GenerateEvent Draw(std::span<const float> logits);
  // Ends the reply: releases the text that is still held back.
  void Finish(FinishReason reason, GenerateEvent& event);

  const RequestId id_;
  const GenerateRequest request_;
  const GenerateCallback callback_;
  const std::unique_ptr<TextDecoder> decoder_;
  const SequenceLimits& limits_;
  StopText stop_;
  std::vector<int32_t> tokens_;
  int64_t cached_ = 0;
  int64_t scored_ = 0;  // prompt tokens reported with log-probabilities
  SequencePages pages_;
};

}  // namespace plinth::infer

#endif  // PLINTH_INFER_ENGINE_SEQUENCE_H_
