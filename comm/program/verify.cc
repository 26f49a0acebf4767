#include "plinth/comm/program/verify.h"

#include <bitset>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "plinth/comm/call/rank_list.h"
#include "plinth/comm/program/print.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

// A set of ranks.
class RankSet {
 public:
  void Add(int rank) {
    const size_t word = rank / 64;
    if (words_.size() <= word) words_.resize(word + 1);
    words_[word] |= uint64_t{1} << (rank % 64);
  }
  bool Has(int rank) const {
    const size_t word = rank / 64;
    return word < words_.size() && (words_[word] >> (rank % 64) & 1);
  }
  // False if the two share a rank.
  bool AddDisjoint(const RankSet& other) {
    if (words_.size() < other.words_.size()) words_.resize(other.words_.size());
    for (size_t i = 0; i < other.words_.size(); ++i) {
      if (words_[i] & other.words_[i]) return false;
      words_[i] |= other.words_[i];
    }
    return true;
  }
  int count() const {
    int count = 0;
    for (const uint64_t word : words_) count += static_cast<int>(std::bitset<64>(word).count());
    return count;
  }

 private:
  absl::InlinedVector<uint64_t, 1> words_;
};

// What a place in memory holds.
struct Value {
  int32_t block = -1;  // -1: never written
  bool partial = false;
  bool finished = false;
  int received_in = -1;   // the round, if a receive wrote it
  RankSet contributions;  // in reductions
};

// One rank's memory.
struct Memory {
  std::vector<Value> input;
  std::vector<Value> output;
  std::vector<Value> scratch;
};

// Runs all ranks' programs, round by round. `in_place`: with shared memory where there is some.
class Interpreter {
 public:
  Interpreter(const Problem& problem, std::span<const RankProgram> programs, bool in_place)
      : problem_(problem), programs_(programs), in_place_(in_place) {}

  absl::Status Run() {
    RETURN_IF_ERROR(CheckShape());
    for (int rank = 0; rank < problem_.size; ++rank) memory_.push_back(InitialMemory(rank));
    for (round_ = 0; round_ < static_cast<int>(programs_[0].rounds.size()); ++round_) {
      RETURN_IF_ERROR(Exchange());
      for (rank_ = 0; rank_ < problem_.size; ++rank_) {
        for (const ComputeStep& step : CurrentRound(rank_).computes) {
          RETURN_IF_ERROR(Compute(step));
        }
      }
    }
    return CheckOutputs();
  }

 private:
  // `step` becomes text only here: most programs have no fault.
  template <typename Step>
  absl::Status Fault(const Step& step, const std::string& what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("round ", round_, ", rank ", rank_, ": ", ToString(step), ": ", what));
  }

  absl::Status CheckShape() const {
    if (static_cast<int>(programs_.size()) != problem_.size) {
      return absl::InvalidArgumentError(absl::StrCat("programs of ", programs_.size(), " ranks"));
    }
    const int32_t blocks = BlocksOf(problem_);
    for (size_t rank = 0; rank < programs_.size(); ++rank) {
      const RankProgram& program = programs_[rank];
      if (program.rounds.size() != programs_[0].rounds.size()) {
        return absl::InvalidArgumentError(
            absl::StrCat("rank ", rank, " has ", program.rounds.size(), " rounds, rank 0 has ",
                         programs_[0].rounds.size()));
      }
      const int32_t want = blocks > 0 ? blocks : programs_[0].blocks;
      if (program.blocks != want || want < 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("rank ", rank, " has ", program.blocks, " blocks, not ", want));
      }
    }
    return absl::OkStatus();
  }

  Memory InitialMemory(int rank) const {
    const RankProgram& program = programs_[rank];
    Memory memory;
    memory.input.resize(program.blocks);
    memory.output.resize(program.blocks);
    memory.scratch.resize(program.scratch_slots);
    for (int32_t block = 0; block < program.blocks; ++block) {
      if (!HasInput(problem_, rank, block)) continue;
      Value& value = IsShared(rank, block) ? memory.output[block] : memory.input[block];
      value.block = block;
      value.contributions.Add(rank);
      value.finished = problem_.size == 1 || !IsReduction(problem_.op);
    }
    return memory;
  }

  bool IsShared(int rank, int32_t block) const {
    return in_place_ && SharesMemory(problem_, rank, block);
  }

  const Round& CurrentRound(int rank) const { return programs_[rank].rounds[round_]; }

  template <typename Step>
  absl::Status CheckRange(const BlockRef& ref, const Step& step) const {
    if (ref.block < 0 || ref.block >= programs_[rank_].blocks) {
      return Fault(step, absl::StrCat("there are ", programs_[rank_].blocks, " blocks"));
    }
    if (ref.space == Space::kScratch) {
      const int32_t slots = programs_[rank_].scratch_slots;
      if (ref.slot < 0 || ref.slot >= slots) {
        return Fault(step, absl::StrCat("there are ", slots, " scratch slots"));
      }
    } else if (ref.partial) {
      return Fault(step, "a partial sum outside of scratch");
    }
    return absl::OkStatus();
  }

  Value& Place(const BlockRef& ref) {
    Memory& memory = memory_[rank_];
    if (ref.space == Space::kScratch) return memory.scratch[ref.slot];
    if (ref.space == Space::kOutput || IsShared(rank_, ref.block)) return memory.output[ref.block];
    return memory.input[ref.block];
  }

  template <typename Step>
  absl::Status CheckReadable(const BlockRef& ref, const Step& step) {
    RETURN_IF_ERROR(CheckRange(ref, step));
    const Value& value = Place(ref);
    if (value.block < 0) return Fault(step, absl::StrCat(ToString(ref), " is not written yet"));
    if (value.block != ref.block) {
      return Fault(step, absl::StrCat(ToString(ref), " holds block ", value.block));
    }
    if (value.partial != ref.partial) {
      return Fault(step, absl::StrCat(ToString(ref), " holds ",
                                      value.partial ? "a partial sum" : "elements"));
    }
    return absl::OkStatus();
  }

  template <typename Step>
  absl::Status CheckWritable(const BlockRef& ref, const Step& step) {
    RETURN_IF_ERROR(CheckRange(ref, step));
    if (ref.space == Space::kInput) return Fault(step, "writes the input");
    if (ref.space == Space::kOutput && !HasOutput(problem_, rank_, ref.block)) {
      return Fault(step, absl::StrCat("this rank gets no block ", ref.block));
    }
    return absl::OkStatus();
  }

  // All sends read what is there before the round, then all receives write.
  absl::Status Exchange() {
    std::vector<std::vector<Arrival>> arrivals(problem_.size);
    for (rank_ = 0; rank_ < problem_.size; ++rank_) {
      for (const SendStep& send : CurrentRound(rank_).sends) {
        if (send.peer < 0 || send.peer >= problem_.size || send.peer == rank_) {
          return Fault(send, "no such peer");
        }
        RETURN_IF_ERROR(CheckReadable(send.from, send));
        arrivals[send.peer].push_back({rank_, &send, Place(send.from)});
      }
    }
    for (rank_ = 0; rank_ < problem_.size; ++rank_) {
      RETURN_IF_ERROR(Receive(arrivals[rank_]));
    }
    return absl::OkStatus();
  }

  struct Arrival {
    int from;
    const SendStep* send;
    Value value;
    bool taken = false;
  };

  absl::Status Receive(std::vector<Arrival>& arrivals) {
    for (const ReceiveStep& receive : CurrentRound(rank_).receives) {
      Arrival* arrival = nullptr;
      for (Arrival& candidate : arrivals) {
        if (candidate.from != receive.peer || candidate.taken) continue;
        arrival = &candidate;
        break;
      }
      if (arrival == nullptr) return Fault(receive, "nothing is sent for it");
      arrival->taken = true;
      const BlockRef& sent = arrival->send->from;
      if (sent.block != receive.to.block || sent.partial != receive.to.partial) {
        return Fault(receive, absl::StrCat("rank ", receive.peer, " does \"",
                                           ToString(*arrival->send), "\""));
      }
      RETURN_IF_ERROR(CheckWritable(receive.to, receive));
      Value& place = Place(receive.to);
      if (place.received_in == round_) return Fault(receive, "so does another in this round");
      if (receive.to.space == Space::kOutput && place.finished) {
        return Fault(receive, "the block is there already");
      }
      place = std::move(arrival->value);
      place.received_in = round_;
    }
    for (const Arrival& arrival : arrivals) {
      if (arrival.taken) continue;
      return absl::InvalidArgumentError(absl::StrCat("round ", round_, ", rank ", rank_,
                                                     ": no receive for what rank ", arrival.from,
                                                     " does: ", ToString(*arrival.send)));
    }
    for (const SendStep& send : CurrentRound(rank_).sends) {
      if (Place(send.from).received_in == round_) {
        return Fault(send, "a receive of this round writes there");
      }
    }
    return absl::OkStatus();
  }

  absl::Status Compute(const ComputeStep& compute) {
    if (compute.from.empty()) return Fault(compute, "no source");
    RETURN_IF_ERROR(CheckWritable(compute.to, compute));
    for (const BlockRef& source : compute.from) {
      RETURN_IF_ERROR(CheckReadable(source, compute));
      if (source.block != compute.to.block) return Fault(compute, "mixes blocks");
      if (&Place(source) == &Place(compute.to) && source.partial != compute.to.partial) {
        return Fault(compute, "overwrites a source with another type");
      }
    }
    const bool copies = compute.from.size() == 1 && compute.from[0].partial == compute.to.partial;
    if (copies) {
      Value value = Place(compute.from[0]);
      value.received_in = -1;
      Place(compute.to) = std::move(value);
      return absl::OkStatus();
    }
    return Reduce(compute);
  }

  absl::Status Reduce(const ComputeStep& compute) {
    if (!IsReduction(problem_.op)) return Fault(compute, "the operation reduces nothing");
    Value sum;
    sum.block = compute.to.block;
    sum.partial = compute.to.partial;
    for (const BlockRef& source : compute.from) {
      const Value& value = Place(source);
      RankSet before = sum.contributions;
      if (sum.contributions.AddDisjoint(value.contributions)) continue;
      std::vector<int> twice;
      for (int rank = 0; rank < problem_.size; ++rank) {
        if (before.Has(rank) && value.contributions.Has(rank)) twice.push_back(rank);
      }
      return Fault(compute, absl::StrCat("adds the contribution of ", RankList(twice), " twice"));
    }
    if (!sum.partial) {
      if (sum.contributions.count() < problem_.size) {
        return Fault(compute, absl::StrCat("finished without ", RankList(Missing(sum))));
      }
      sum.finished = true;
    }
    Place(compute.to) = std::move(sum);
    return absl::OkStatus();
  }

  std::vector<int> Missing(const Value& value) const {
    std::vector<int> missing;
    for (int rank = 0; rank < problem_.size; ++rank) {
      if (!value.contributions.Has(rank)) missing.push_back(rank);
    }
    return missing;
  }

  absl::Status CheckOutputs() {
    for (rank_ = 0; rank_ < problem_.size; ++rank_) {
      for (int32_t block = 0; block < programs_[0].blocks; ++block) {
        if (!HasOutput(problem_, rank_, block)) continue;
        const Value& value = memory_[rank_].output[block];
        const std::string place = absl::StrCat("at the end, rank ", rank_, ": output ", block);
        if (value.block < 0) return absl::InvalidArgumentError(place + " was never written");
        if (value.block != block) {
          return absl::InvalidArgumentError(absl::StrCat(place, " holds block ", value.block));
        }
        if (!value.finished) {
          return absl::InvalidArgumentError(
              absl::StrCat(place, " lacks the contribution of ", RankList(Missing(value))));
        }
      }
    }
    return absl::OkStatus();
  }

  const Problem& problem_;
  const std::span<const RankProgram> programs_;
  const bool in_place_;
  std::vector<Memory> memory_;  // by rank
  int round_ = 0;               // now at
  int rank_ = 0;                // now at
};

}  // namespace

absl::Status VerifyPrograms(const Problem& problem, std::span<const RankProgram> programs) {
  if (!HasProgram(problem.op)) {
    return absl::InvalidArgumentError(OpName(problem.op) + " has no program");
  }
  for (const bool in_place : {false, true}) {
    RETURN_IF_ERROR(Interpreter(problem, programs, in_place).Run())
        << OpName(problem.op) << " over " << problem.size << " ranks, "
        << (in_place ? "in place" : "buffers apart");
  }
  return absl::OkStatus();
}

}  // namespace plinth::comm
