#include "plinth/comm/program/builder.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "plinth/hardware/base/check.h"

namespace plinth::comm {
namespace {

using Transfer = ProgramBuilder::Transfer;

// What a rank holds of a block.
struct Holding {
  int contributions = 0;  // 0: nothing
  bool finished = false;
  BlockRef where;
};

// The slots of one rank. The lowest free one is taken, so programs do not depend on history.
class Slots {
 public:
  int32_t Take() {
    if (free_.empty()) return count_++;
    const int32_t slot = *free_.begin();
    free_.erase(free_.begin());
    return slot;
  }
  // Free from the next round on: in this one the slot may still be read.
  void Release(const BlockRef& ref) {
    if (ref.space == Space::kScratch) released_.push_back(ref.slot);
  }
  void EndRound() {
    free_.insert(released_.begin(), released_.end());
    released_.clear();
  }
  int32_t count() const { return count_; }

 private:
  int32_t count_ = 0;
  std::set<int32_t> free_;
  std::vector<int32_t> released_;
};

// Goes through the rounds and writes the steps of the ranks that are kept.
class Lowering {
 public:
  Lowering(const Problem& problem, int32_t blocks, int rounds, int only_rank)
      : problem_(problem), only_rank_(only_rank), slots_(problem.size), programs_(problem.size) {
    for (int rank = 0; rank < problem.size; ++rank) {
      if (!Keeps(rank)) continue;
      programs_[rank].rounds.resize(rounds);
      programs_[rank].blocks = blocks;
      CopyOwnInput(rank, blocks);
    }
  }

  void RunRound(std::span<const Transfer> transfers) {
    round_ = transfers.front().round;
    std::vector<Parcel> parcels;
    parcels.reserve(transfers.size());
    for (const Transfer& transfer : transfers) parcels.push_back(Dispatch(transfer));
    for (const Parcel& parcel : parcels) HandOver(parcel);
    // All that one rank receives of one block, by sender.
    std::stable_sort(parcels.begin(), parcels.end(), [](const Parcel& a, const Parcel& b) {
      return std::pair(a.to, a.block) < std::pair(b.to, b.block);
    });
    for (size_t begin = 0; begin < parcels.size();) {
      size_t end = begin + 1;
      while (end < parcels.size() && parcels[end].to == parcels[begin].to &&
             parcels[end].block == parcels[begin].block) {
        ++end;
      }
      Accept(std::span<Parcel>(parcels).subspan(begin, end - begin));
      begin = end;
    }
    for (Slots& slots : slots_) slots.EndRound();
  }

  std::vector<RankProgram> Finish() {
    for (int rank = 0; rank < problem_.size; ++rank) {
      programs_[rank].scratch_slots = slots_[rank].count();
    }
    return std::move(programs_);
  }

 private:
  struct Parcel {
    int from;
    int to;
    int32_t block;
    Holding sent;
    BlockRef received;
  };

  bool Keeps(int rank) const { return only_rank_ < 0 || only_rank_ == rank; }
  Round& RoundOf(int rank) { return programs_[rank].rounds[round_]; }

  // Blocks that are whole from the start and belong to the result.
  void CopyOwnInput(int rank, int32_t blocks) {
    for (int32_t block = 0; block < blocks; ++block) {
      if (!HasInput(problem_, rank, block) || !HasOutput(problem_, rank, block)) continue;
      if (!Initial(rank, block).finished) continue;
      programs_[rank].rounds[0].computes.push_back(
          {BlockRef{Space::kOutput, false, block}, {BlockRef{Space::kInput, false, block}}});
    }
  }

  Holding Initial(int rank, int32_t block) const {
    if (!HasInput(problem_, rank, block)) return {};
    const bool whole = problem_.size == 1 || !IsReduction(problem_.op);
    return {whole ? problem_.size : 1, whole, BlockRef{Space::kInput, false, block}};
  }

  Holding& At(int rank, int32_t block) {
    const int64_t key = (static_cast<int64_t>(rank) << 32) | block;
    const auto [at, inserted] = holdings_.try_emplace(key);
    if (inserted) at->second = Initial(rank, block);
    return at->second;
  }

  Parcel Dispatch(const Transfer& transfer) {
    const Holding& held = At(transfer.from, transfer.block);
    CHECK_GT(held.contributions, 0) << "rank " << transfer.from << " holds nothing of block "
                                    << transfer.block << " in round " << transfer.round;
    if (Keeps(transfer.from)) {
      RoundOf(transfer.from).sends.push_back({transfer.to, held.where});
    }
    Parcel parcel{transfer.from, transfer.to, transfer.block, held, held.where};
    const bool to_output = held.finished && HasOutput(problem_, transfer.to, transfer.block);
    parcel.received.space = to_output ? Space::kOutput : Space::kScratch;
    parcel.received.slot = to_output ? -1 : slots_[transfer.to].Take();
    if (Keeps(transfer.to)) {
      RoundOf(transfer.to).receives.push_back({transfer.from, parcel.received});
    }
    return parcel;
  }

  // Sums, and blocks on their way to someone else, leave their sender.
  void HandOver(const Parcel& parcel) {
    Holding& held = At(parcel.from, parcel.block);
    if (held.contributions == 0) return;  // sent to several at once
    if (held.finished && held.where.space != Space::kScratch) return;
    slots_[parcel.from].Release(held.where);
    held = {};
  }

  void Accept(std::span<Parcel> parcels) {
    const int rank = parcels.front().to;
    const int32_t block = parcels.front().block;
    Holding& held = At(rank, block);
    if (parcels.front().sent.finished) {
      held = {problem_.size, true, parcels.front().received};
      return;
    }
    std::vector<std::pair<int, BlockRef>> sources;  // with the rank that it comes from
    if (held.contributions > 0) sources.emplace_back(rank, held.where);
    for (const Parcel& parcel : parcels) {
      sources.emplace_back(parcel.from, parcel.received);
      held.contributions += parcel.sent.contributions;
    }
    std::stable_sort(sources.begin(), sources.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    ComputeStep step;
    for (const auto& source : sources) step.from.push_back(source.second);
    held.finished = held.contributions >= problem_.size;
    held.where = step.to = held.finished ? PlaceOfResult(rank, block) : PlaceOfSum(rank, step.from);
    for (const BlockRef& source : step.from) {
      if (source.slot != step.to.slot) slots_[rank].Release(source);
    }
    if (step.from.size() == 1 && step.from.front() == step.to) return;
    if (Keeps(rank)) RoundOf(rank).computes.push_back(std::move(step));
  }

  BlockRef PlaceOfResult(int rank, int32_t block) {
    if (HasOutput(problem_, rank, block)) return {Space::kOutput, false, block};
    return {Space::kScratch, false, block, slots_[rank].Take()};
  }
  // A sum goes on in the place of one that it is made of.
  BlockRef PlaceOfSum(int rank, const std::vector<BlockRef>& sources) {
    for (const BlockRef& source : sources) {
      if (source.partial || sources.size() == 1) return source;
    }
    return {Space::kScratch, true, sources.front().block, slots_[rank].Take()};
  }

  const Problem& problem_;
  const int only_rank_;
  int round_ = 0;
  absl::flat_hash_map<int64_t, Holding> holdings_;  // by rank and block; absent: as at the start
  std::vector<Slots> slots_;
  std::vector<RankProgram> programs_;
};

std::vector<RankProgram> Lower(const Problem& problem, int32_t blocks, int rounds, int only_rank,
                               std::vector<Transfer> transfers) {
  std::stable_sort(transfers.begin(), transfers.end(),
                   [](const Transfer& a, const Transfer& b) { return a.round < b.round; });
  Lowering lowering(problem, blocks, std::max(rounds, 1), only_rank);
  for (size_t begin = 0; begin < transfers.size();) {
    size_t end = begin + 1;
    while (end < transfers.size() && transfers[end].round == transfers[begin].round) ++end;
    lowering.RunRound(std::span<const Transfer>(transfers).subspan(begin, end - begin));
    begin = end;
  }
  return lowering.Finish();
}

}  // namespace

ProgramBuilder::ProgramBuilder(const Problem& problem)
    : problem_(problem), blocks_(std::max(1, BlocksOf(problem))) {
  CHECK(HasProgram(problem.op)) << OpName(problem.op);
  CHECK_GE(problem.size, 1);
  CHECK(!HasRoot(problem.op) || (problem.root >= 0 && problem.root < problem.size));
  CHECK_GE(problem.ranks_per_host, 1);
}

void ProgramBuilder::CutInto(int32_t blocks) {
  CHECK_GE(blocks, 1);
  CHECK(transfers_.empty());
  if (BlocksOf(problem_) == 0) blocks_ = blocks;
}

void ProgramBuilder::Send(int round, int from, int to, int32_t block) {
  CHECK_GE(round, 0);
  CHECK_NE(from, to);
  CHECK(from >= 0 && from < size() && to >= 0 && to < size()) << from << " " << to;
  CHECK(block >= 0 && block < blocks_) << block;
  next_round_ = std::max(next_round_, round + 1);
  transfers_.push_back({round, from, to, block});
}

RankProgram ProgramBuilder::Build(int rank) const {
  CHECK(rank >= 0 && rank < size()) << rank;
  return std::move(Lower(problem_, blocks_, next_round_, rank, transfers_)[rank]);
}

std::vector<RankProgram> ProgramBuilder::BuildAll() const {
  return Lower(problem_, blocks_, next_round_, -1, transfers_);
}

}  // namespace plinth::comm
