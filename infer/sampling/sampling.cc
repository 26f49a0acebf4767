#include "plinth/infer/sampling/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/rng.h"

namespace plinth::infer {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

double Value(float logit) { return std::isnan(logit) ? kMinusInfinity : logit; }

// More likely first; ties by id, so that the order is total.
struct MoreLikely {
  std::span<const float> logits;
  bool operator()(int32_t a, int32_t b) const {
    const double la = Value(logits[static_cast<size_t>(a)]);
    const double lb = Value(logits[static_cast<size_t>(b)]);
    return la != lb ? la > lb : a < b;
  }
};

int32_t MostLikely(std::span<const float> logits) {
  size_t best = 0;
  for (size_t i = 1; i < logits.size(); ++i) {
    if (Value(logits[i]) > Value(logits[best])) best = i;
  }
  return static_cast<int32_t>(best);
}

// The `count` most likely ids in order.
std::vector<int32_t> Ranked(std::span<const float> logits, size_t count) {
  std::vector<int32_t> ids(logits.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  count = std::min(count, ids.size());
  const auto end = ids.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(ids.begin(), end, ids.end(), MoreLikely{logits});
  ids.resize(count);
  return ids;
}

// Likelihoods relative to the most likely token, in [0, 1].
double RelativeLikelihood(float logit, double best, double temperature) {
  const double value = Value(logit);
  if (value == best) return 1;  // also when both are infinite
  return std::exp((value - best) / temperature);
}

// How many of the leading (most likely) candidates the filters keep; at least one.
size_t CountKept(const std::vector<double>& likelihoods, const SamplingParams& params) {
  double total = 0;
  for (const double l : likelihoods) total += l;
  double sum = 0;
  size_t kept = 0;
  while (kept < likelihoods.size()) {
    if (kept > 0 && (sum >= params.top_p * total || likelihoods[kept] < params.min_p)) break;
    sum += likelihoods[kept++];
  }
  return kept;
}

}  // namespace

absl::Status ValidateSampling(const SamplingParams& params) {
  std::vector<std::string> problems;
  // Negated, so that NaN is refused as well.
  if (!(params.temperature >= 0) || std::isinf(params.temperature)) {
    problems.push_back(absl::StrCat("temperature must be >= 0, got ", params.temperature));
  }
  if (params.top_k < 0) {
    problems.push_back(absl::StrCat("top_k must be >= 0, got ", params.top_k));
  }
  if (!(params.top_p > 0 && params.top_p <= 1)) {
    problems.push_back(absl::StrCat("top_p must be in (0, 1], got ", params.top_p));
  }
  if (!(params.min_p >= 0 && params.min_p <= 1)) {
    problems.push_back(absl::StrCat("min_p must be in [0, 1], got ", params.min_p));
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "; "));
}

int32_t SampleToken(std::span<const float> logits_V, const SamplingParams& params,
                    int64_t position) {
  CHECK(!logits_V.empty());
  if (params.temperature == 0 || params.top_k == 1) return MostLikely(logits_V);
  const size_t k = params.top_k == 0 ? logits_V.size() : static_cast<size_t>(params.top_k);
  const bool filtered = params.top_k != 0 || params.top_p < 1 || params.min_p > 0;
  // Without a filter the order does not matter, and ids in order need no sort.
  std::vector<int32_t> ids = filtered ? Ranked(logits_V, k) : std::vector<int32_t>();
  if (!filtered) {
    for (size_t i = 0; i < logits_V.size(); ++i) ids.push_back(static_cast<int32_t>(i));
  }
  const double best = Value(logits_V[static_cast<size_t>(MostLikely(logits_V))]);
  std::vector<double> likelihoods;
  likelihoods.reserve(ids.size());
  for (const int32_t id : ids) {
    likelihoods.push_back(
        RelativeLikelihood(logits_V[static_cast<size_t>(id)], best, params.temperature));
  }
  if (filtered) likelihoods.resize(CountKept(likelihoods, params));

  double total = 0;
  for (const double l : likelihoods) total += l;
  const uint64_t key = RngKey(params.seed, "sample");
  double left = RandomUniform(key, 0, static_cast<uint64_t>(position)) * total;
  int32_t last = ids.front();
  for (size_t i = 0; i < likelihoods.size(); ++i) {
    if (likelihoods[i] == 0) continue;
    last = ids[i];  // rounding may leave a little after the last one
    left -= likelihoods[i];
    if (left < 0) break;
  }
  return last;
}

Logprobs ComputeLogprobs(std::span<const float> logits_V, int32_t chosen, int64_t top_n) {
  CHECK_GE(chosen, 0);
  CHECK_LT(static_cast<size_t>(chosen), logits_V.size());
  CHECK_GE(top_n, 0);
  const double best = Value(logits_V[static_cast<size_t>(MostLikely(logits_V))]);
  double sum = 0;
  for (const float logit : logits_V) sum += RelativeLikelihood(logit, best, 1);
  const double log_sum = std::log(sum);
  const auto entry = [&](int32_t id) {
    const double value = Value(logits_V[static_cast<size_t>(id)]);
    // The difference first: it is exact where best alone would swallow log_sum.
    return TokenLogprob{id, (value == best ? 0 : value - best) - log_sum};
  };
  Logprobs result{.chosen = entry(chosen)};
  if (top_n > 0) {
    for (const int32_t id : Ranked(logits_V, static_cast<size_t>(top_n))) {
      result.top.push_back(entry(id));
    }
  }
  return result;
}

}  // namespace plinth::infer
