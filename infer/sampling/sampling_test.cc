#include "plinth/infer/sampling/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/rng.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::infer {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<float> RandomLogits(int64_t size, uint64_t seed, double spread = 3) {
  std::vector<float> logits;
  for (int64_t i = 0; i < size; ++i) {
    logits.push_back(static_cast<float>(spread * RandomNormal(seed, 1, static_cast<uint64_t>(i))));
  }
  return logits;
}

// The filters by their definitions, over a full sort.
std::set<int32_t> AllowedIds(const std::vector<float>& logits, const SamplingParams& params) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  if (params.top_k > 0) {
    order.resize(std::min(order.size(), static_cast<size_t>(params.top_k)));
  }
  const double best = logits[static_cast<size_t>(order[0])];
  std::vector<double> p;
  for (const int32_t id : order) {
    p.push_back(std::exp((logits[static_cast<size_t>(id)] - best) / params.temperature));
  }
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  std::set<int32_t> allowed;
  double before = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const bool in_nucleus = i == 0 || before < params.top_p * total;
    const bool likely = i == 0 || p[i] >= params.min_p * p[0];
    if (in_nucleus && likely) allowed.insert(order[i]);
    before += p[i];
  }
  return allowed;
}

TEST(SampleTokenTest, DrawsExactlyTheAllowedTokens) {
  const std::vector<SamplingParams> settings = {
      {.temperature = 1, .top_k = 5},
      {.temperature = 2, .top_p = 0.6},
      {.temperature = 0.7, .min_p = 0.1},
      {.temperature = 1.5, .top_k = 9, .top_p = 0.8, .min_p = 0.05},
      {.temperature = 1, .top_k = 1000},
      {.temperature = 1, .top_p = 1e-9},
  };
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const std::vector<float> logits = RandomLogits(23, seed);
    for (SamplingParams params : settings) {
      params.seed = seed;
      const std::set<int32_t> allowed = AllowedIds(logits, params);
      for (int64_t position = 0; position < 300; ++position) {
        ASSERT_TRUE(allowed.contains(SampleToken(logits, params, position)));
      }
    }
  }
}

// 20000 draws: the count of an event of probability p has a standard deviation of
// sqrt(n p (1 - p)); five of them are exceeded once in a million.
TEST(SampleTokenTest, FrequenciesFollowTheSoftmax) {
  const std::vector<float> logits = RandomLogits(7, 3, 1);
  for (const double temperature : {0.5, 1.0, 3.0}) {
    std::vector<double> p;
    for (const float l : logits) p.push_back(std::exp(l / temperature));
    const double total = std::accumulate(p.begin(), p.end(), 0.0);
    std::vector<int> counts(logits.size());
    constexpr int kDraws = 20000;
    for (int64_t i = 0; i < kDraws; ++i) {
      ++counts[static_cast<size_t>(
          SampleToken(logits, {.temperature = temperature, .seed = 11}, i))];
    }
    for (size_t i = 0; i < p.size(); ++i) {
      const double q = p[i] / total;
      EXPECT_NEAR(counts[i], kDraws * q, 5 * std::sqrt(kDraws * q * (1 - q)));
    }
  }
}

TEST(SampleTokenTest, GreedyTakesTheMostLikelyAndTheSmallerIdOfATie) {
  const std::vector<float> logits = {-1, 4, 4, 2};
  EXPECT_EQ(SampleToken(logits, {.temperature = 0}, 0), 1);
  EXPECT_EQ(SampleToken(logits, {.temperature = 9, .top_k = 1}, 0), 1);
}

TEST(SampleTokenTest, DependsOnSeedAndPositionOnly) {
  const std::vector<float> logits(1000, 0.0f);
  std::set<int32_t> by_position, by_seed;
  for (uint64_t i = 0; i < 50; ++i) {
    const SamplingParams params{.seed = 4};
    const int32_t token = SampleToken(logits, params, static_cast<int64_t>(i));
    EXPECT_EQ(token, SampleToken(logits, params, static_cast<int64_t>(i)));
    by_position.insert(token);
    by_seed.insert(SampleToken(logits, {.seed = i}, 4));
  }
  EXPECT_GT(by_position.size(), 40u);
  EXPECT_GT(by_seed.size(), 40u);
}

TEST(SampleTokenTest, NonFiniteLogitsNeverCrashAndNanIsNeverChosen) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (const std::vector<float>& logits :
       {std::vector<float>{nan, 1, nan, 2}, {nan, inf, 0, inf}, {-inf, -inf, 3, nan}}) {
    for (int64_t position = 0; position < 50; ++position) {
      for (const SamplingParams& params :
           {SamplingParams{}, {.temperature = 0}, {.top_p = 0.5}, {.top_k = 2}}) {
        const int32_t id = SampleToken(logits, params, position);
        EXPECT_FALSE(std::isnan(logits[static_cast<size_t>(id)]));
      }
    }
  }
}

TEST(ComputeLogprobsTest, IsTheLogSoftmaxAndRanksTheTop) {
  const std::vector<float> logits = RandomLogits(40, 9);
  long double sum = 0;
  for (const float l : logits) sum += std::exp(static_cast<long double>(l));
  const double log_total = static_cast<double>(std::log(sum));
  const Logprobs result = ComputeLogprobs(logits, 17, 60);
  EXPECT_EQ(result.chosen.id, 17);
  EXPECT_NEAR(result.chosen.logprob, logits[17] - log_total, 1e-12);
  ASSERT_EQ(result.top.size(), 40u);
  double mass = 0;
  for (size_t i = 0; i < result.top.size(); ++i) {
    mass += std::exp(result.top[i].logprob);
    if (i > 0) {
      EXPECT_GE(result.top[i - 1].logprob, result.top[i].logprob);
    }
  }
  EXPECT_NEAR(mass, 1, 1e-12);
  EXPECT_TRUE(ComputeLogprobs(logits, 0, 0).top.empty());
}

TEST(ComputeLogprobsTest, LargeLogitsDoNotOverflow) {
  const std::vector<float> logits = {3e38f, -3e38f, 3e38f};
  const Logprobs result = ComputeLogprobs(logits, 0, 2);
  EXPECT_NEAR(result.chosen.logprob, -std::log(2.0), 1e-12);
  EXPECT_EQ(result.top[0].id, 0);
  EXPECT_EQ(result.top[1].id, 2);
}

TEST(ValidateSamplingTest, ListsEveryBadField) {
  EXPECT_OK(ValidateSampling({}));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(ValidateSampling({.temperature = -1, .top_k = -2, .top_p = 0, .min_p = 2}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("temperature must be >= 0, got -1"), HasSubstr("top_k"),
                             HasSubstr("top_p must be in (0, 1], got 0"), HasSubstr("min_p"))));
  EXPECT_THAT(ValidateSampling({.temperature = nan, .top_p = nan, .min_p = nan}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("temperature"), HasSubstr("top_p"), HasSubstr("min_p"))));
}

}  // namespace
}  // namespace plinth::infer
