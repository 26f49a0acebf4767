// Recursive halving and doubling: 2 log2 n rounds and the least possible traffic, for n = 2^k.
//
// R. Rabenseifner: Optimization of collective reduction operations, ICCS 2004, and R. Thakur,
// R. Rabenseifner, W. Gropp, Int. J. High Perform. Comput. Appl. 19 (2005). In the round of bit k
// each rank and the one whose number differs in that bit exchange half of what they still sum;
// neighbours come first, when it is most. Gathering goes the other way.
//
// For other n, ranks 0 .. 2f-1 with f = n - 2^k are folded: rank 2i leaves its part to 2i + 1
// before, and gets its result from there. The folded group has 2^k members; member i stands for
// one or two ranks and owns their shares. That costs two rounds more, and up to twice the bytes.
#include <bit>
#include <vector>

#include "plinth/comm/program/algorithms/generators.h"

namespace plinth::comm {
namespace {

class HalvingDoubling {
 public:
  explicit HalvingDoubling(ProgramBuilder& builder)
      : builder_(builder),
        members_(static_cast<int>(std::bit_floor(static_cast<unsigned>(builder.size())))),
        folded_(builder.size() - members_),
        shares_(members_) {
    builder.CutInto(members_);
    const bool whole_vector = builder.problem().op == OpKind::kAllReduce;
    for (int member = 0; member < members_; ++member) {
      if (whole_vector) {
        shares_[member] = {member};
        continue;
      }
      if (member < folded_) shares_[member].push_back(2 * member);
      shares_[member].push_back(RankOf(member));
    }
  }

  void ReduceScatter() {
    const int first = builder_.next_round();
    for (int i = 0; i < folded_; ++i) {
      for (int32_t block = 0; block < builder_.blocks(); ++block) {
        builder_.Send(first, 2 * i, 2 * i + 1, block);
      }
    }
    for (int bit = 1, done = 0; bit < members_; done |= bit, bit *= 2) {
      const int round = builder_.next_round();
      for (int member = 0; member < members_; ++member) {
        for (int owner = 0; owner < members_; ++owner) {
          const int apart = member ^ owner;
          if ((apart & done) == 0 && (apart & bit) != 0) SendShares(round, member, bit, owner);
        }
      }
    }
  }

  void AllGather() {
    for (int bit = members_ / 2, done = 0; bit > 0; done |= bit, bit /= 2) {
      const int round = builder_.next_round();
      for (int member = 0; member < members_; ++member) {
        for (int owner = 0; owner < members_; ++owner) {
          if (((member ^ owner) & ~done) == 0) SendShares(round, member, bit, owner);
        }
      }
    }
  }

  // A folded rank's own share to the rank that stands for it.
  void FoldShares() {
    for (int i = 0; i < folded_; ++i) builder_.Send(0, 2 * i, 2 * i + 1, 2 * i);
  }
  // And back.
  void UnfoldShares() {
    const int round = builder_.next_round();
    for (int i = 0; i < folded_; ++i) builder_.Send(round, 2 * i + 1, 2 * i, 2 * i);
  }
  // The whole result to the folded ranks, except for what they have.
  void UnfoldAll(bool own_share_too) {
    const int round = builder_.next_round();
    for (int i = 0; i < folded_; ++i) {
      for (int32_t block = 0; block < builder_.blocks(); ++block) {
        if (own_share_too || block != 2 * i) builder_.Send(round, 2 * i + 1, 2 * i, block);
      }
    }
  }

 private:
  int RankOf(int member) const { return member < folded_ ? 2 * member + 1 : member + folded_; }

  // The shares of `owner`, from `member` to the one across `bit`.
  void SendShares(int round, int member, int bit, int owner) {
    for (const int32_t block : shares_[owner]) {
      builder_.Send(round, RankOf(member), RankOf(member ^ bit), block);
    }
  }

  ProgramBuilder& builder_;
  const int members_;
  const int folded_;
  std::vector<std::vector<int32_t>> shares_;  // blocks by member
};

}  // namespace

void GenerateHalvingDoubling(ProgramBuilder& builder) {
  HalvingDoubling steps(builder);
  switch (PlainOp(builder.problem().op)) {
    case OpKind::kReduceScatter:
      steps.ReduceScatter();
      steps.UnfoldShares();
      break;
    case OpKind::kAllGather:
      steps.FoldShares();
      steps.AllGather();
      steps.UnfoldAll(false);
      break;
    default:
      steps.ReduceScatter();
      steps.AllGather();
      steps.UnfoldAll(true);
      break;
  }
}

}  // namespace plinth::comm
