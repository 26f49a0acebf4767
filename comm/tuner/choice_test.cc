#include "plinth/comm/tuner/choice.h"

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "plinth/comm/call/fingerprint.h"
#include "plinth/comm/program/algorithms/algorithms.h"
#include "plinth/comm/tuner/table.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

Tuner PinnedTuner(const std::string& pins) {
  return Tuner(DefaultTable("tcp"), ParsePins(pins).value());
}

Choice Chosen(Tuner& tuner, const Question& question) { return tuner.Choose(question).value(); }

TEST(ParsePins, ReadsWhatItDocuments) {
  ASSERT_OK_AND_ASSIGN(const Pins none, ParsePins("  "));
  EXPECT_TRUE(none.empty());
  ASSERT_OK_AND_ASSIGN(const Pins pins,
                       ParsePins("all_reduce=ring, broadcast = double_tree:16,all_to_all=direct"));
  ASSERT_EQ(pins.size(), 3u);
  EXPECT_EQ(pins.at(OpKind::kAllReduce).algorithm, "ring");
  EXPECT_EQ(pins.at(OpKind::kAllReduce).slices, 0);
  EXPECT_EQ(pins.at(OpKind::kBroadcast).algorithm, "double_tree");
  EXPECT_EQ(pins.at(OpKind::kBroadcast).slices, 16);
  EXPECT_EQ(pins.at(OpKind::kAllToAll).algorithm, "direct");
}

TEST(ParsePins, RefusesAndListsWhatThereIs) {
  const auto refused = [](const char* text, const char* a, const char* b) {
    EXPECT_THAT(ParsePins(text),
                StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr(a), HasSubstr(b))));
  };
  refused("allreduce=ring", "unknown operation \"allreduce\"", "all_reduce, reduce_scatter");
  refused("barrier=ring", "unknown operation \"barrier\"", "known: all_reduce");
  refused("all_reduce=rign", "unknown algorithm \"rign\"", "direct, mesh, ring, chunked_ring");
  refused("all_reduce", "unknown algorithm \"\"", "direct, mesh");
  refused("all_reduce=pairwise", "pairwise has no all_reduce", "known for it: direct, mesh, ring");
  refused("all_reduce=ring,all_reduce=mesh", "all_reduce is pinned twice", "");
  refused("all_reduce=ring:0", "want 1 to 16384 slices", "\"0\"");
  refused("all_reduce=ring:20000", "want 1 to 16384 slices", "\"20000\"");
  refused("all_reduce=ring:2:3", "want 1 to 16384 slices", "\"2:3\"");
  refused("zig", "neither an algorithm nor an operation", "all_reduce, reduce_scatter");
  refused("all_reduce=ring,", "unknown operation \"\"", "");
}

TEST(Tuner, SameQuestionSameAnswer) {
  for (const OpKind op : {OpKind::kAllReduce, OpKind::kAllGather, OpKind::kBroadcast,
                          OpKind::kAllToAll, OpKind::kReduceScatterV}) {
    Tuner first(DefaultTable("tcp"));
    Tuner second(DefaultTable("tcp"));
    for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{4096}, int64_t{1} << 30}) {
      const Question question{op, 6, 3, bytes};
      const Choice once = Chosen(first, question);
      EXPECT_EQ(once.algorithm, Chosen(first, question).algorithm);
      EXPECT_EQ(once.algorithm, Chosen(second, question).algorithm);
      EXPECT_EQ(once.slices, Chosen(second, question).slices);
      EXPECT_GE(once.slices, 1);
      EXPECT_TRUE(FindAlgorithm(once.algorithm)->Supports(op));
      EXPECT_EQ(once.pipelined, FindAlgorithm(once.algorithm)->pipelined);
    }
  }
}

// All sizes of a class are answered alike, so ranks need not agree on more than the class.
TEST(Tuner, ClassesArePowersOfTwo) {
  Tuner tuner(DefaultTable("tcp"));
  for (const int64_t bytes : {513, 700, 1023, 1024}) {
    EXPECT_EQ(Chosen(tuner, {OpKind::kAllReduce, 8, 8, bytes}).estimate_us,
              Chosen(tuner, {OpKind::kAllReduce, 8, 8, 1024}).estimate_us);
  }
}

// The choice is the cheapest, so it never costs more than any pin.
TEST(Tuner, NoPinIsCheaper) {
  Tuner tuner(DefaultTable("tcp"));
  for (const OpKind op :
       {OpKind::kAllReduce, OpKind::kAllGather, OpKind::kReduceScatter, OpKind::kBroadcast,
        OpKind::kReduce, OpKind::kGather, OpKind::kScatter, OpKind::kAllToAll}) {
    for (const int64_t bytes : {8, 1 << 14, 1 << 24}) {
      const Question question{op, 12, 4, bytes};
      const double best = Chosen(tuner, question).estimate_us;
      for (const Algorithm& algorithm : Algorithms()) {
        if (!algorithm.Supports(op)) continue;
        Tuner pinned = PinnedTuner(absl::StrCat(OpName(op), "=", std::string(algorithm.name)));
        const Choice choice = Chosen(pinned, question);
        EXPECT_EQ(choice.algorithm, algorithm.name);
        EXPECT_GE(choice.estimate_us, best * (1 - 1e-12)) << algorithm.name;
      }
    }
  }
}

// What everyone expects of a network: few rounds for short vectors, few bytes for long ones.
TEST(Tuner, ShortVectorsWantFewRoundsAndLongOnesFewBytes) {
  CostTable table = DefaultTable("tcp");
  table.model.message_us = table.model.local.alpha_us;  // one message at a time
  Tuner tuner(table);
  const auto chosen = [&](OpKind op, int64_t bytes) {
    return std::string(Chosen(tuner, {op, 16, 16, bytes}).algorithm);
  };
  EXPECT_EQ(chosen(OpKind::kBroadcast, 64), "binomial");
  EXPECT_EQ(chosen(OpKind::kAllToAll, 64), "bruck");
  const std::string long_sum = chosen(OpKind::kAllReduce, 1 << 28);
  EXPECT_NE(long_sum, "binomial");
  EXPECT_NE(chosen(OpKind::kBroadcast, 1 << 28), "binomial");
}

TEST(Tuner, HierarchyWhereHostsAreFarApart) {
  CostTable table = DefaultTable("shm");
  table.model.remote = {200, 100};
  Tuner tuner(table);
  EXPECT_EQ(Chosen(tuner, {OpKind::kAllReduce, 16, 8, 1 << 16}).algorithm, "hierarchical");
  // On one host there is nothing to be gained, and it is no candidate.
  EXPECT_NE(Chosen(tuner, {OpKind::kAllReduce, 16, 16, 1 << 16}).algorithm, "hierarchical");
}

TEST(Tuner, DirectOnlyIfTheCallerHasIt) {
  Tuner tuner(DefaultTable("shm"));
  Question question{OpKind::kAllReduce, 4, 4, 1 << 20};
  EXPECT_NE(Chosen(tuner, question).algorithm, kDirect);
  question.direct = true;
  EXPECT_EQ(Chosen(tuner, question).algorithm, kDirect);
  Tuner pinned(DefaultTable("shm"), ParsePins("all_reduce=direct").value());
  EXPECT_EQ(Chosen(pinned, question).algorithm, kDirect);
  question.direct = false;
  EXPECT_THAT(pinned.Choose(question), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                HasSubstr("all_reduce=direct is pinned")));
  EXPECT_THAT(pinned.Explain(question), HasSubstr("all_reduce=direct is pinned"));
}

TEST(Tuner, PinsOfPlainOperationsHoldForTheirCounts) {
  Tuner tuner = PinnedTuner(
      "all_gather=bruck,all_to_all=bruck,reduce_scatter=ring,"
      "reduce_scatter_v=mesh:3");
  EXPECT_EQ(Chosen(tuner, {OpKind::kAllGatherV, 4, 4, 1000}).algorithm, "bruck");
  EXPECT_NE(Chosen(tuner, {OpKind::kAllToAllV, 4, 4, 1000}).algorithm, "bruck");
  EXPECT_EQ(Chosen(tuner, {OpKind::kReduceScatterV, 4, 4, 1000}).algorithm, "mesh");
  EXPECT_EQ(Chosen(tuner, {OpKind::kReduceScatterV, 4, 4, 1000}).slices, 3);
  EXPECT_EQ(Chosen(tuner, {OpKind::kReduceScatter, 4, 4, 1000}).algorithm, "ring");
}

// A rank's scratch stays below what it should never exceed by much, however long the vector.
TEST(Tuner, LongVectorsAreSliced) {
  for (const Algorithm& algorithm : Algorithms()) {
    if (!algorithm.Supports(OpKind::kAllReduce)) continue;
    Tuner tuner = PinnedTuner(absl::StrCat("all_reduce=", std::string(algorithm.name)));
    const Question question{OpKind::kAllReduce, 8, 4, int64_t{4} << 30, 2, 4};
    const Problem problem{question.op, question.size, 0, question.ranks_per_host};
    const ProgramCost cost(problem, GenerateAllPrograms(algorithm, problem));
    const Choice choice = Chosen(tuner, question);
    EXPECT_LE(cost.ScratchBytes({question.bytes, 2}, choice.slices, choice.pipelined), 64 << 20)
        << algorithm.name;
  }
}

TEST(Tuner, OneRankAndNoBytes) {
  Tuner tuner(DefaultTable("shm"));
  EXPECT_EQ(Chosen(tuner, {OpKind::kAllReduce, 1, 1, 0}).algorithm, "mesh");
  EXPECT_EQ(Chosen(tuner, {OpKind::kGather, 1, 4, 100}).slices, 1);
}

TEST(Tuner, ExplainsItself) {
  Tuner tuner = PinnedTuner("all_reduce=ring:4");
  const std::string pinned = tuner.Explain({OpKind::kAllReduce, 4, 2, 3000, 2, 4});
  EXPECT_THAT(pinned, HasSubstr("all_reduce over 4 ranks on 2 hosts, 2.92969 KiB of 2-byte "
                                "elements, priced as 4 KiB over tcp\n* ring "));
  EXPECT_THAT(pinned, HasSubstr("4 slices"));
  EXPECT_THAT(pinned, HasSubstr("chosen: ring, because it is pinned\n"));
  EXPECT_THAT(pinned, HasSubstr("hierarchical"));
  const std::string priced = tuner.Explain({OpKind::kBroadcast, 4, 4, 64});
  EXPECT_THAT(priced, AllOf(HasSubstr("on 1 host, 64 B"), HasSubstr("estimate is the lowest"),
                            HasSubstr("binomial"), HasSubstr("double_tree")));
  EXPECT_EQ(priced.find("hierarchical"), std::string::npos);
}

}  // namespace
}  // namespace plinth::comm
