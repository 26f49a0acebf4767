#include "plinth/comm/tuner/cost.h"

#include <algorithm>
#include <set>

#include "plinth/comm/program/slice.h"
#include "plinth/hardware/base/check.h"

namespace plinth::comm {

ProgramCost::ProgramCost(const Problem& problem, std::span<const RankProgram> programs) {
  CHECK_EQ(static_cast<int>(programs.size()), problem.size);
  const bool per_pair = PlainOp(problem.op) == OpKind::kAllToAll;
  rounds_ = static_cast<int>(programs[0].rounds.size());
  blocks_of_bytes_ = per_pair ? problem.size : programs[0].blocks;
  std::set<std::vector<Load>> different;
  for (int rank = 0; rank < problem.size; ++rank) {
    const RankProgram& program = programs[rank];
    scratch_slots_ = std::max(scratch_slots_, program.scratch_slots);
    std::vector<Load> loads;
    loads.reserve(program.rounds.size());
    for (const Round& round : program.rounds) {
      loads.push_back(LoadOf(round, rank, problem.ranks_per_host));
    }
    different.insert(std::move(loads));
  }
  ranks_.assign(different.begin(), different.end());
}

ProgramCost::Load ProgramCost::LoadOf(const Round& round, int rank, int ranks_per_host) {
  Load load;
  Count(round, rank, ranks_per_host, true, load.local);
  Count(round, rank, ranks_per_host, false, load.remote);
  for (const ComputeStep& step : round.computes) {
    for (const BlockRef& source : step.from) ++(source.partial ? load.read_partial : load.read);
  }
  return load;
}

void ProgramCost::Count(const Round& round, int rank, int ranks_per_host, bool local,
                        LinkLoad& load) {
  const auto counts = [&](int peer) {
    return (rank / ranks_per_host == peer / ranks_per_host) == local;
  };
  std::set<int> peers;
  for (const SendStep& step : round.sends) {
    if (!counts(step.peer)) continue;
    peers.insert(step.peer);
    ++(step.from.partial ? load.sent_partial : load.sent);
  }
  for (const ReceiveStep& step : round.receives) {
    if (!counts(step.peer)) continue;
    peers.insert(step.peer);
    ++(step.to.partial ? load.received_partial : load.received);
  }
  load.peers = static_cast<int>(peers.size());
}

// Slices in one step talk to the same peers more often than to others.
void ProgramCost::Add(const LinkLoad& load, LinkLoad& sum) {
  sum.peers = std::max(sum.peers, load.peers);
  sum.sent += load.sent;
  sum.sent_partial += load.sent_partial;
  sum.received += load.received;
  sum.received_partial += load.received_partial;
}

void ProgramCost::Add(const Load& load, Load& sum) {
  Add(load.local, sum.local);
  Add(load.remote, sum.remote);
  sum.read += load.read;
  sum.read_partial += load.read_partial;
}

double ProgramCost::PriceOf(const LinkLoad& load, const LinkCost& cost, double message_us,
                            const BlockSizes& sizes) {
  if (load.peers == 0) return 0;
  const double sent = load.sent * sizes.elements + load.sent_partial * sizes.partial;
  const double received = load.received * sizes.elements + load.received_partial * sizes.partial;
  return cost.alpha_us + message_us * (load.peers - 1) + std::max(sent, received) / cost.mb_per_s;
}

double ProgramCost::PriceOf(const Load& load, const CostModel& model, const BlockSizes& sizes) {
  const double read = load.read * sizes.elements + load.read_partial * sizes.partial;
  return PriceOf(load.local, model.local, model.message_us, sizes) +
         PriceOf(load.remote, model.remote, model.message_us, sizes) + read / model.reduce_mb_per_s;
}

double ProgramCost::Price(const CostModel& model, const Volume& volume, int slices,
                          bool pipelined) const {
  const double block = BlockBytes(volume) / slices;
  const BlockSizes sizes{block, block * volume.partial_ratio};
  const Schedule schedule{rounds_, slices, pipelined};
  // Slices one by one all cost the same.
  const int steps = pipelined ? schedule.steps() : rounds_;
  double total = 0;
  for (int step = 0; step < steps; ++step) {
    double slowest = 0;
    for (const std::vector<Load>& rounds : ranks_) {
      Load load;
      schedule.ForEach(step, [&](int slice, int round) { Add(rounds[round], load); });
      slowest = std::max(slowest, PriceOf(load, model, sizes));
    }
    total += slowest;
  }
  return pipelined ? total : total * slices;
}

double ProgramCost::BlockBytes(const Volume& volume) const {
  return static_cast<double>(volume.bytes) / blocks_of_bytes_;
}

int64_t ProgramCost::ScratchBytes(const Volume& volume, int slices, bool pipelined) const {
  const Schedule schedule{rounds_, slices, pipelined};
  return static_cast<int64_t>(BlockBytes(volume) * volume.partial_ratio * scratch_slots_ *
                              schedule.in_flight() / slices);
}

}  // namespace plinth::comm
