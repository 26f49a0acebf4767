// Choosing the next token from a model's logits. Pure functions of their arguments.
//
// A draw is keyed by (seed, position of the token in its sequence) with the counter-based
// generator, so a reply depends neither on the batch it was computed in nor on whether the
// sequence was stopped and resumed.
#ifndef PLINTH_INFER_SAMPLING_SAMPLING_H_
#define PLINTH_INFER_SAMPLING_SAMPLING_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"

namespace plinth::infer {

// Filters apply in this order: temperature, top-k, top-p, min-p; the token is then drawn
// from what is left. The most likely token is never filtered out.
struct SamplingParams {
  double temperature = 1;  // >= 0; divides logits. 0: the most likely token (greedy)
  int64_t top_k = 0;       // keep the k most likely; 0: all
  double top_p = 1;        // in (0, 1]: keep the fewest most likely that sum to >= top_p
  double min_p = 0;        // in [0, 1]: drop those below min_p times the most likely
  uint64_t seed = 0;
};

// kInvalidArgument lists every field out of its range, with the range.
absl::Status ValidateSampling(const SamplingParams& params);

// The token for `position`. Ties in likelihood go to the smaller id. `logits_V` is not
// empty; NaN counts as -infinity. `params` are valid (CHECK).
int32_t SampleToken(std::span<const float> logits_V, const SamplingParams& params,
                    int64_t position);

// Natural log of softmax(logits) of one token: raw logits, no temperature or filter.
struct TokenLogprob {
  int32_t id = 0;
  double logprob = 0;
};

struct Logprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  // most likely first; ties: smaller id first
};

// Sums in double in the order of ids, so equal logits give equal values everywhere.
// 0 <= top_n; at most V are returned.
Logprobs ComputeLogprobs(std::span<const float> logits_V, int32_t chosen, int64_t top_n);

}  // namespace plinth::infer

#endif  // PLINTH_INFER_SAMPLING_SAMPLING_H_
