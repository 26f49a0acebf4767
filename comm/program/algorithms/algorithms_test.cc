// Every algorithm, operation, number of ranks and root, proven by the verifier; and what each
// algorithm is known for, counted on its programs.
#include "plinth/comm/program/algorithms/algorithms.h"

#include <array>
#include <bit>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "plinth/comm/call/fingerprint.h"
#include "plinth/comm/program/algorithms/double_tree.h"
#include "plinth/comm/program/print.h"
#include "plinth/comm/program/problem.h"
#include "plinth/comm/program/program.h"
#include "plinth/comm/program/verify.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

constexpr OpKind kPlainOps[] = {OpKind::kAllReduce, OpKind::kReduceScatter, OpKind::kAllGather,
                                OpKind::kBroadcast, OpKind::kReduce,        OpKind::kGather,
                                OpKind::kScatter,   OpKind::kAllToAll};

std::string NameOf(const Algorithm& algorithm, const Problem& problem) {
  return absl::StrCat(std::string(algorithm.name), " ", OpName(problem.op), " n=", problem.size,
                      " root=", problem.root, " per host=", problem.ranks_per_host);
}

class EveryAlgorithm : public ::testing::TestWithParam<Algorithm> {};

// All roots of small groups; of larger ones the first, the last and one in between.
bool TriesRoot(int root, int size) {
  return size <= 33 || root == 0 || root == size / 2 + 1 || root == size - 1;
}

void VerifyRoots(const Algorithm& algorithm, OpKind op, int size, int ranks_per_host) {
  for (int root = 0; root < (HasRoot(op) ? size : 1); ++root) {
    if (!TriesRoot(root, size)) continue;
    const Problem problem{op, size, root, ranks_per_host};
    ASSERT_OK(VerifyPrograms(problem, GenerateAllPrograms(algorithm, problem)))
        << NameOf(algorithm, problem);
  }
}

TEST_P(EveryAlgorithm, DoesWhatItsOperationsPromise) {
  for (const OpKind op : kPlainOps) {
    if (!GetParam().Supports(op)) continue;
    for (int size = 1; size <= 64; ++size) {
      if (GetParam().needs_hosts) {
        for (const int ranks_per_host : {1, 2, 3, 5, 8, 16}) {
          VerifyRoots(GetParam(), op, size, ranks_per_host);
        }
      } else {
        VerifyRoots(GetParam(), op, size, 1);
      }
      ASSERT_FALSE(HasFatalFailure());
    }
  }
}

// Blocks that a rank sends, in all rounds.
int64_t BlocksSent(const RankProgram& program) {
  int64_t blocks = 0;
  for (const Round& round : program.rounds) blocks += static_cast<int64_t>(round.sends.size());
  return blocks;
}

std::vector<RankProgram> All(const char* name, const Problem& problem) {
  return GenerateAllPrograms(*FindAlgorithm(name), problem);
}

int CeilLog2(int n) { return std::bit_width(static_cast<unsigned>(n - 1)); }

// 2 (n-1) of n equal blocks: 2 (n-1)/n of the elements, at every rank.
TEST(Ring, SendsTheLeastPossible) {
  for (int n = 2; n <= 33; ++n) {
    for (const RankProgram& program : All("ring", {OpKind::kAllReduce, n})) {
      EXPECT_EQ(program.blocks, n);
      EXPECT_EQ(BlocksSent(program), 2 * (n - 1));
      EXPECT_EQ(program.rounds.size(), static_cast<size_t>(2 * (n - 1)));
      EXPECT_LE(program.scratch_slots, 2);
      for (const Round& round : program.rounds) EXPECT_EQ(round.sends.size(), 1u);
    }
  }
}

// So do the mesh, NHR and NB for any n and halving-doubling for powers of two.
TEST(AllReduce, BandwidthOptimalAlgorithms) {
  for (int n = 2; n <= 33; ++n) {
    for (const char* name : {"mesh", "nhr", "nb", "halving_doubling"}) {
      const bool power = std::has_single_bit(static_cast<unsigned>(n));
      if (name == std::string("halving_doubling") && !power) continue;
      for (const RankProgram& program : All(name, {OpKind::kAllReduce, n})) {
        EXPECT_EQ(BlocksSent(program), 2 * (n - 1)) << name << " " << n;
      }
    }
  }
}

TEST(Rounds, AreAsFewAsPublished) {
  const auto rounds = [](const char* name, OpKind op, int n) {
    return static_cast<int>(All(name, {op, n})[0].rounds.size());
  };
  for (int n = 2; n <= 33; ++n) {
    const int log = CeilLog2(n);
    EXPECT_EQ(rounds("mesh", OpKind::kAllReduce, n), 2);
    EXPECT_EQ(rounds("mesh", OpKind::kAllToAll, n), 1);
    for (const char* name : {"nhr", "nb"}) {
      EXPECT_EQ(rounds(name, OpKind::kAllGather, n), log) << n;
      EXPECT_EQ(rounds(name, OpKind::kReduceScatter, n), log) << n;
      EXPECT_EQ(rounds(name, OpKind::kAllReduce, n), 2 * log) << n;
      EXPECT_EQ(rounds(name, OpKind::kBroadcast, n), 2 * log) << n;
    }
    EXPECT_EQ(rounds("bruck", OpKind::kAllGather, n), log) << n;
    EXPECT_EQ(rounds("bruck", OpKind::kAllToAll, n), log) << n;
    EXPECT_EQ(rounds("binomial", OpKind::kScatter, n), log) << n;
    EXPECT_EQ(rounds("binomial", OpKind::kAllReduce, n), 2 * log) << n;
    EXPECT_EQ(rounds("pairwise", OpKind::kAllToAll, n), n - 1) << n;
    // Another n costs a round to fold and one to unfold, but has a level less each way.
    EXPECT_EQ(rounds("halving_doubling", OpKind::kAllReduce, n), 2 * log) << n;
    EXPECT_LE(rounds("double_tree", OpKind::kBroadcast, n), CeilLog2(n + 1) + 1) << n;
    EXPECT_LE(rounds("hierarchical", OpKind::kAllReduce, n), 4) << n;
  }
}

TEST(DoubleBinaryTree, EveryRankIsALeafInOneTree) {
  for (int n = 1; n <= 200; ++n) {
    const std::array<BinaryTree, 2> trees = DoubleBinaryTree(n);
    int leaves = 0;
    for (const BinaryTree& tree : trees) {
      std::vector<int> children(n, 0);
      int roots = 0;
      for (int node = 0; node < n; ++node) {
        const int parent = tree.parent[node];
        if (parent < 0) {
          EXPECT_EQ(node, tree.root);
          EXPECT_EQ(tree.depth[node], 0);
          ++roots;
        } else {
          EXPECT_LE(++children[parent], 2);
          EXPECT_EQ(tree.depth[node], tree.depth[parent] + 1);  // so there are no cycles
        }
      }
      EXPECT_EQ(roots, 1);
      EXPECT_LE(tree.levels, CeilLog2(n + 1)) << n;
      for (int node = 0; node < n; ++node) EXPECT_EQ(tree.IsLeaf(node), children[node] == 0);
    }
    for (int node = 0; node < n; ++node) {
      const int as_leaf = trees[0].IsLeaf(node) + trees[1].IsLeaf(node);
      EXPECT_GE(as_leaf, 1) << "rank " << node << " of " << n;
      leaves += as_leaf;
    }
    if (n % 2 == 0) {
      EXPECT_EQ(leaves, n) << "one tree each";
    }
  }
}

// No rank sends to, or hears from, more than one other in a round.
TEST(OneToOne, PairwiseAndRing) {
  for (const char* name : {"pairwise", "ring"}) {
    for (int n = 2; n <= 17; ++n) {
      for (const RankProgram& program : All(name, {OpKind::kReduceScatter, n})) {
        for (const Round& round : program.rounds) {
          EXPECT_LE(round.sends.size(), 1u);
          EXPECT_LE(round.receives.size(), 1u);
        }
      }
    }
  }
}

TEST(Mesh, ReducesInRankOrderAtOnce) {
  const std::vector<RankProgram> programs = All("mesh", {OpKind::kReduceScatter, 5});
  for (int rank = 0; rank < 5; ++rank) {
    const Round& round = programs[rank].rounds[0];
    ASSERT_EQ(round.computes.size(), 1u);
    const std::vector<BlockRef>& from = round.computes[0].from;
    ASSERT_EQ(from.size(), 5u);
    for (int source = 0; source < 5; ++source) {
      if (source == rank) {
        EXPECT_EQ(from[source], (BlockRef{Space::kInput, false, rank}));
        continue;
      }
      for (const ReceiveStep& receive : round.receives) {
        if (receive.peer == source) {
          EXPECT_EQ(from[source], receive.to);
        }
      }
    }
  }
}

// Between full hosts, each host's data crosses once to each other host.
TEST(Hierarchical, CrossesBetweenHostsAsSeldomAsPossible) {
  constexpr int kPerHost = 4;
  for (int hosts = 2; hosts <= 5; ++hosts) {
    const int n = hosts * kPerHost;
    const auto crossings = [&](OpKind op) {
      int64_t count = 0;
      const std::vector<RankProgram> programs = All("hierarchical", {op, n, 5, kPerHost});
      for (int rank = 0; rank < n; ++rank) {
        for (const Round& round : programs[rank].rounds) {
          for (const SendStep& send : round.sends) count += rank / kPerHost != send.peer / kPerHost;
        }
      }
      return count;
    };
    EXPECT_EQ(crossings(OpKind::kAllGather), n * (hosts - 1));
    EXPECT_EQ(crossings(OpKind::kReduceScatter), n * (hosts - 1));
    EXPECT_EQ(crossings(OpKind::kAllReduce), 2 * n * (hosts - 1));  // of n blocks
    EXPECT_EQ(crossings(OpKind::kBroadcast), hosts - 1);
    EXPECT_EQ(crossings(OpKind::kReduce), hosts - 1);
  }
}

TEST(List, NamesAndOperations) {
  std::set<std::string_view> names;
  for (const Algorithm& algorithm : Algorithms()) {
    EXPECT_TRUE(names.insert(algorithm.name).second) << algorithm.name;
    EXPECT_EQ(FindAlgorithm(algorithm.name), &algorithm);
    for (int op = 0; op < 32; ++op) {
      if (algorithm.Supports(static_cast<OpKind>(op))) {
        EXPECT_TRUE(HasProgram(static_cast<OpKind>(op))) << algorithm.name << " " << op;
      }
    }
  }
  EXPECT_EQ(FindAlgorithm("rings"), nullptr);
  EXPECT_EQ(FindAlgorithm(""), nullptr);
  EXPECT_EQ(Algorithms().front().name, "mesh");
  for (int op = 0; op < 32; ++op) {
    const OpKind kind = static_cast<OpKind>(op);
    EXPECT_EQ(Algorithms().front().Supports(kind), HasProgram(kind));
  }
}

bool Equal(const RankProgram& a, const RankProgram& b) {
  return a.scratch_slots == b.scratch_slots && PrintProgram(a) == PrintProgram(b);
}

TEST_P(EveryAlgorithm, OneRanksProgramIsItsPartOfAll) {
  for (const OpKind op : kPlainOps) {
    if (!GetParam().Supports(op)) continue;
    const Problem problem{op, 7, 3, 3};
    const std::vector<RankProgram> all = GenerateAllPrograms(GetParam(), problem);
    for (int rank = 0; rank < 7; ++rank) {
      EXPECT_TRUE(Equal(GenerateProgram(GetParam(), problem, rank), all[rank])) << rank;
    }
  }
}

// Their sizes are known to the two ends only, so nobody else may handle a block.
TEST_P(EveryAlgorithm, OfAllToAllVPassesNothingOn) {
  if (!GetParam().Supports(OpKind::kAllToAllV)) GTEST_SKIP();
  for (int n = 1; n <= 9; ++n) {
    const Problem problem{OpKind::kAllToAllV, n};
    const std::vector<RankProgram> programs = GenerateAllPrograms(GetParam(), problem);
    EXPECT_OK(VerifyPrograms(problem, programs));
    for (int rank = 0; rank < n; ++rank) {
      for (const Round& round : programs[rank].rounds) {
        for (const SendStep& send : round.sends) EXPECT_EQ(send.from.block, rank * n + send.peer);
      }
    }
  }
}

TEST_P(EveryAlgorithm, DoesVOperationsAsTheirNamesakes) {
  for (const OpKind op : {OpKind::kReduceScatterV, OpKind::kAllGatherV}) {
    if (!GetParam().Supports(op)) continue;
    for (int n = 1; n <= 5; ++n) {
      const RankProgram v = GenerateProgram(GetParam(), {op, n}, n - 1);
      EXPECT_TRUE(Equal(v, GenerateProgram(GetParam(), {PlainOp(op), n}, n - 1)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(List, EveryAlgorithm,
                         ::testing::ValuesIn(Algorithms().begin(), Algorithms().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace plinth::comm
