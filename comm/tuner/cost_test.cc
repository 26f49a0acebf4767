// Prices against the formulas that textbooks give for the algorithms.
#include "plinth/comm/tuner/cost.h"

#include "gtest/gtest.h"
#include "plinth/comm/call/fingerprint.h"
#include "plinth/comm/program/algorithms/algorithms.h"
#include "plinth/comm/program/problem.h"

namespace plinth::comm {
namespace {

constexpr double kAlpha = 10;
constexpr double kMbPerS = 1000;  // beta = 0.001 us per byte
constexpr double kMessage = 3;
constexpr int64_t kBytes = 1 << 20;

CostModel Model() {
  CostModel model;
  model.local = model.remote = {kAlpha, kMbPerS};
  model.message_us = kMessage;
  model.reduce_mb_per_s = 1e15;  // free
  return model;
}

double PriceOf(const char* name, const Problem& problem, const Volume& volume, int slices,
               const CostModel& model) {
  const Algorithm& algorithm = *FindAlgorithm(name);
  return ProgramCost(problem, GenerateAllPrograms(algorithm, problem))
      .Price(model, volume, slices, algorithm.pipelined);
}

TEST(ProgramCost, Ring) {
  for (int n = 2; n <= 9; ++n) {
    const double bytes = 2.0 * (n - 1) / n * kBytes;
    // One neighbour on each side.
    const double rounds = 2 * (n - 1) * (kAlpha + (n > 2 ? kMessage : 0));
    EXPECT_NEAR(PriceOf("ring", {OpKind::kAllReduce, n, 0, n}, {kBytes}, 1, Model()),
                rounds + bytes / kMbPerS, 1e-6);
  }
}

TEST(ProgramCost, MeshAndBinomial) {
  EXPECT_NEAR(PriceOf("mesh", {OpKind::kAllReduce, 4, 0, 4}, {kBytes}, 1, Model()),
              2 * (kAlpha + 2 * kMessage + 0.75 * kBytes / kMbPerS), 1e-6);
  EXPECT_NEAR(PriceOf("mesh", {OpKind::kAllToAll, 4, 0, 4}, {kBytes}, 1, Model()),
              kAlpha + 2 * kMessage + 0.75 * kBytes / kMbPerS, 1e-6);
  EXPECT_NEAR(PriceOf("binomial", {OpKind::kBroadcast, 8, 5, 8}, {kBytes}, 1, Model()),
              3 * (kAlpha + kBytes / kMbPerS), 1e-6);
}

// Down a chain of n ranks, s slices take n - 1 + s - 1 steps of a slice each.
TEST(ProgramCost, PipelinedChain) {
  for (const int slices : {1, 4, 32}) {
    const double step = kAlpha + static_cast<double>(kBytes) / slices / kMbPerS;
    const int steps = 7 + slices - 1;
    const double price =
        PriceOf("chunked_ring", {OpKind::kBroadcast, 8, 0, 8}, {kBytes}, slices, Model());
    EXPECT_GE(price, steps * step - 1e-6);
    EXPECT_LE(price, steps * (step + kMessage) + 1e-6);
  }
}

// Many slices bring the trees to the bandwidth of the ring: 2 bytes for each.
TEST(ProgramCost, DoubleTreeReachesFullBandwidth) {
  CostModel model = Model();
  model.local.alpha_us = model.message_us = 0;
  const double price =
      PriceOf("double_tree", {OpKind::kAllReduce, 16, 0, 16}, {kBytes}, 1024, model);
  EXPECT_NEAR(price * kMbPerS / kBytes, 2, 0.05);
  const double broadcast =
      PriceOf("double_tree", {OpKind::kBroadcast, 16, 3, 16}, {kBytes}, 1024, model);
  EXPECT_NEAR(broadcast * kMbPerS / kBytes, 1, 0.05);
}

TEST(ProgramCost, SlicesOneByOneRepeatTheRounds) {
  const Problem problem{OpKind::kAllReduce, 5, 0, 5};
  const double once = PriceOf("ring", problem, {kBytes / 8}, 1, Model());
  EXPECT_NEAR(PriceOf("ring", problem, {kBytes}, 8, Model()), 8 * once, 1e-6);
}

// Of a ring's 2 (n-1) blocks, n-2 are partial sums: the first is input, n-1 are results.
TEST(ProgramCost, PartialSumsOfNarrowFloatsAreWider) {
  constexpr int n = 6;
  const Problem problem{OpKind::kAllReduce, n, 0, n};
  const double plain = PriceOf("ring", problem, {kBytes, 1}, 1, Model());
  const double wide = PriceOf("ring", problem, {kBytes, 2}, 1, Model());
  EXPECT_NEAR(wide - plain, (n - 2.0) / n * kBytes / kMbPerS, 1e-6);
  EXPECT_NEAR(PriceOf("mesh", problem, {kBytes, 2}, 1, Model()),
              PriceOf("mesh", problem, {kBytes, 1}, 1, Model()), 1e-6);
}

TEST(ProgramCost, ReducingCosts) {
  CostModel model = Model();
  model.reduce_mb_per_s = 500;
  const Problem problem{OpKind::kReduceScatter, 4, 0, 4};
  // Rank r reads four blocks of a quarter.
  EXPECT_NEAR(
      PriceOf("mesh", problem, {kBytes}, 1, model) - PriceOf("mesh", problem, {kBytes}, 1, Model()),
      kBytes / 500.0, 1e-6);
}

// With slow links between hosts, the hierarchy crosses them with less.
TEST(ProgramCost, HierarchyPaysBetweenHosts) {
  CostModel model = Model();
  model.remote = {100, 100};
  const Problem problem{OpKind::kAllReduce, 16, 0, 8};
  const double hierarchy = PriceOf("hierarchical", problem, {kBytes}, 1, model);
  EXPECT_LT(hierarchy, PriceOf("mesh", problem, {kBytes}, 1, model));
  EXPECT_LT(hierarchy, PriceOf("ring", problem, {kBytes}, 1, model));
}

TEST(ProgramCost, ScratchShrinksWithSlices) {
  const Problem problem{OpKind::kReduceScatter, 4};
  const ProgramCost cost(problem, GenerateAllPrograms(*FindAlgorithm("mesh"), problem));
  EXPECT_EQ(cost.BlockBytes({kBytes}), kBytes / 4);
  EXPECT_EQ(cost.ScratchBytes({kBytes}, 1, false), 3 * kBytes / 4);
  EXPECT_EQ(cost.ScratchBytes({kBytes}, 4, false), 3 * kBytes / 16);
  EXPECT_EQ(cost.ScratchBytes({kBytes, 2}, 4, false), 3 * kBytes / 8);
}

TEST(ProgramCost, ZeroBytesAndOneRank) {
  EXPECT_NEAR(PriceOf("ring", {OpKind::kAllReduce, 2, 0, 2}, {0}, 1, Model()), 2 * kAlpha, 1e-6);
  EXPECT_NEAR(PriceOf("mesh", {OpKind::kAllReduce, 1}, {kBytes}, 1, Model()), 0, 1e-6);
}

}  // namespace
}  // namespace plinth::comm
