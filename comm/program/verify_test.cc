// The verifier has to be able to fail: it must refuse every program with a step dropped, doubled,
// swapped or pointed elsewhere.
#include "plinth/comm/program/verify.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "plinth/comm/call/fingerprint.h"
#include "plinth/comm/program/algorithms/algorithms.h"
#include "plinth/comm/program/print.h"
#include "plinth/comm/program/problem.h"
#include "plinth/comm/program/program.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::HasSubstr;

using Programs = std::vector<RankProgram>;
// Changes programs at one place; the `index`-th such. False when there is none any more.
using Mutation = std::function<bool(Programs&, int index)>;

// Calls visit(round of one rank) until it is used up.
bool AtRound(Programs& programs, int& index, const std::function<bool(Round&, int&)>& visit) {
  for (RankProgram& program : programs) {
    for (Round& round : program.rounds) {
      if (visit(round, index)) return true;
    }
  }
  return false;
}

// The index-th element of the lists `Member` of all rounds, counted down.
template <auto Member, typename Change>
Mutation AtStep(Change change) {
  return [change](Programs& programs, int index) {
    return AtRound(programs, index, [&](Round& round, int& left) {
      auto& steps = round.*Member;
      if (left >= static_cast<int>(steps.size())) {
        left -= static_cast<int>(steps.size());
        return false;
      }
      change(steps, left);
      return true;
    });
  };
}

constexpr auto kDrop = [](auto& steps, int i) { steps.erase(steps.begin() + i); };
constexpr auto kDouble = [](auto& steps, int i) { steps.insert(steps.begin() + i, steps[i]); };

std::vector<std::pair<std::string, Mutation>> Mutations(int size, int32_t blocks) {
  const auto next_peer = [size](auto& steps, int i) { steps[i].peer = (steps[i].peer + 1) % size; };
  const auto next_block = [blocks](BlockRef& ref) { ref.block = (ref.block + 1) % blocks; };
  std::vector<std::pair<std::string, Mutation>> all = {
      {"drop a send", AtStep<&Round::sends>(kDrop)},
      {"drop a receive", AtStep<&Round::receives>(kDrop)},
      {"drop a computation", AtStep<&Round::computes>(kDrop)},
      {"double a send", AtStep<&Round::sends>(kDouble)},
      {"double a receive", AtStep<&Round::receives>(kDouble)},
      {"send to the wrong peer", AtStep<&Round::sends>(next_peer)},
      {"receive from the wrong peer", AtStep<&Round::receives>(next_peer)},
      {"reduce one source less",
       AtStep<&Round::computes>([](auto& steps, int i) { steps[i].from.pop_back(); })},
      {"reduce one source twice", AtStep<&Round::computes>([](auto& steps, int i) {
         steps[i].from.push_back(steps[i].from.front());
       })},
  };
  if (blocks > 1) {
    all.push_back({"send the wrong block", AtStep<&Round::sends>([next_block](auto& steps, int i) {
                     next_block(steps[i].from);
                   })});
    all.push_back(
        {"receive the wrong block",
         AtStep<&Round::receives>([next_block](auto& steps, int i) { next_block(steps[i].to); })});
    all.push_back(
        {"compute the wrong block",
         AtStep<&Round::computes>([next_block](auto& steps, int i) { next_block(steps[i].to); })});
  }
  return all;
}

void ExpectAllMutantsRefused(const Algorithm& algorithm, const Problem& problem) {
  const Programs right = GenerateAllPrograms(algorithm, problem);
  ASSERT_OK(VerifyPrograms(problem, right));
  for (const auto& [name, mutate] : Mutations(problem.size, right[0].blocks)) {
    for (int index = 0;; ++index) {
      Programs mutant = right;
      if (!mutate(mutant, index)) break;
      ASSERT_FALSE(VerifyPrograms(problem, mutant).ok())
          << std::string(algorithm.name) << " " << OpName(problem.op) << " n=" << problem.size
          << ": " << name << ", the " << index << "th";
    }
  }
}

TEST(VerifyPrograms, RefusesEveryProgramWithAFault) {
  for (const Algorithm& algorithm : Algorithms()) {
    for (int op = 0; op < 16; ++op) {
      const OpKind kind = static_cast<OpKind>(op);
      if (!algorithm.Supports(kind) || PlainOp(kind) != kind) continue;
      for (const int size : {3, 4, 6}) {
        ExpectAllMutantsRefused(algorithm, Problem{kind, size, size / 2, 2});
        ASSERT_FALSE(HasFatalFailure());
      }
    }
  }
}

// Whole rounds in another order, or another rank's program.
TEST(VerifyPrograms, RefusesRoundsInAnotherOrder) {
  for (const char* name : {"ring", "halving_doubling", "nhr", "nb", "mesh"}) {
    const Problem problem{OpKind::kAllReduce, 4};
    const Programs right = GenerateAllPrograms(*FindAlgorithm(name), problem);
    for (size_t i = 0; i + 1 < right[0].rounds.size(); ++i) {
      Programs mutant = right;
      for (RankProgram& program : mutant) std::swap(program.rounds[i], program.rounds[i + 1]);
      EXPECT_FALSE(VerifyPrograms(problem, mutant).ok()) << name << " rounds " << i;
      mutant = right;
      std::swap(mutant[1].rounds[i], mutant[1].rounds[i + 1]);
      EXPECT_FALSE(VerifyPrograms(problem, mutant).ok()) << name << " rounds " << i << " of 1";
    }
    Programs mutant = right;
    std::swap(mutant[0], mutant[1]);
    EXPECT_FALSE(VerifyPrograms(problem, mutant).ok()) << name;
  }
}

TEST(VerifyPrograms, RefusesTheProgramOfAnotherOperation) {
  const Algorithm& mesh = *FindAlgorithm("mesh");
  const Problem reduce{OpKind::kReduce, 4, 1};
  const Problem other_root{OpKind::kReduce, 4, 2};
  EXPECT_FALSE(VerifyPrograms(other_root, GenerateAllPrograms(mesh, reduce)).ok());
  const Problem all{OpKind::kAllReduce, 4};
  EXPECT_FALSE(VerifyPrograms(all, GenerateAllPrograms(mesh, reduce)).ok());
  EXPECT_FALSE(VerifyPrograms({OpKind::kBarrier, 4}, GenerateAllPrograms(mesh, all)).ok());
  EXPECT_FALSE(VerifyPrograms({OpKind::kAllReduce, 5}, GenerateAllPrograms(mesh, all)).ok());
}

// A ring of three with one change, and the text that says where the fault is.
class Message : public ::testing::Test {
 protected:
  void Expect(const std::string& text) {
    EXPECT_THAT(VerifyPrograms(problem_, programs_),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)))
        << PrintProgram(programs_[1]);
  }

  const Problem problem_{OpKind::kAllReduce, 3};
  Programs programs_ = GenerateAllPrograms(*FindAlgorithm("ring"), problem_);
};

TEST_F(Message, NothingSent) {
  programs_[0].rounds[2].sends.clear();
  Expect(
      "all_reduce over 3 ranks, buffers apart: round 2, rank 1: receive output 0 from 0: "
      "nothing is sent for it");
}

TEST_F(Message, NothingReceived) {
  programs_[1].rounds[2].receives.clear();
  Expect("round 2, rank 1: no receive for what rank 0 does: send output 0 to 1");
}

TEST_F(Message, NotWritten) {
  programs_[1].rounds[0].sends[0].from = BlockRef{Space::kOutput, false, 0};
  Expect("round 0, rank 1: send output 0 to 2: output 0 is not written yet");
}

TEST_F(Message, WrongType) {
  programs_[1].rounds[1].sends[0].from.partial = false;
  Expect("holds a partial sum");
}

TEST_F(Message, LacksAContribution) {
  ComputeStep& last = programs_[1].rounds[1].computes.back();
  for (BlockRef& source : last.from) {
    if (source.space == Space::kScratch) last.from = {source};
  }
  Expect(
      "round 1, rank 1: output 1 = finish(partial scratch 0 = block 1): finished without rank 1");
}

TEST_F(Message, AddsTwice) {
  ComputeStep& last = programs_[1].rounds[1].computes.back();
  last.from.push_back({Space::kInput, false, 1});
  Expect("adds the contribution of rank 1 twice");
}

TEST_F(Message, NeverArrives) {
  for (RankProgram& program : programs_) program.rounds.pop_back();
  Expect("at the end, rank 0: output 1 was never written");
}

TEST_F(Message, LeftRaw) {
  for (RankProgram& program : programs_) program.rounds.resize(1);
  programs_[0].rounds[0].computes = {
      {BlockRef{Space::kOutput, false, 0}, {BlockRef{Space::kInput, false, 0}}}};
  Expect("at the end, rank 0: output 0 lacks the contribution of ranks 1, 2");
}

TEST_F(Message, Slots) {
  programs_[2].scratch_slots = 0;
  Expect("there are 0 scratch slots");
}

TEST_F(Message, WritesTheInput) {
  programs_[2].rounds[0].receives[0].to.space = Space::kInput;
  programs_[2].rounds[0].receives[0].to.slot = -1;
  Expect("writes the input");
}

// A gather that receives into the memory that it is about to send from: wrong in place only.
TEST(VerifyPrograms, SeesSharedMemory) {
  const Problem problem{OpKind::kAllReduce, 2};
  Programs programs(2);
  const BlockRef input{Space::kInput, false, 0};
  const BlockRef output{Space::kOutput, false, 0};
  for (int rank = 0; rank < 2; ++rank) {
    programs[rank].blocks = 1;
    programs[rank].rounds.resize(1);
    Round& round = programs[rank].rounds[0];
    round.sends = {{1 - rank, input}};
    round.receives = {{1 - rank, output}};
    round.computes = {{output, {input, output}}};
  }
  EXPECT_THAT(VerifyPrograms(problem, programs),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("in place: round 0, rank 0: send input 0 to 1: a receive of this "
                                 "round writes there")));
}

TEST(VerifyPrograms, RefusesTwoReceivesIntoOnePlace) {
  const Problem problem{OpKind::kGather, 3, 0};
  Programs programs = GenerateAllPrograms(*FindAlgorithm("mesh"), problem);
  programs[0].scratch_slots = 1;
  for (ReceiveStep& receive : programs[0].rounds[0].receives) {
    receive.to.space = Space::kScratch;
    receive.to.slot = 0;
  }
  EXPECT_THAT(VerifyPrograms(problem, programs),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("receive scratch 0 = block 2 from 2: so does another")));
}

}  // namespace
}  // namespace plinth::comm
