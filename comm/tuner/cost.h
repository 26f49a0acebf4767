// What a program costs: rounds times latency, bytes over bandwidth, and reducing.
//
// A step (slice.h) costs a rank, for each kind of link that it uses in it,
//   alpha_us  +  message_us for each peer beyond the first  +  max(sent, received) / mb_per_s
// and then the bytes that its computations read, over reduce_mb_per_s. A step lasts as long as
// its slowest rank, a program as long as all its steps. Real ranks are not that closely in step,
// so it is a model for comparing algorithms, not a forecast.
// MB are 10^6 bytes: bytes / mb_per_s are microseconds.
#ifndef PLINTH_COMM_TUNER_COST_H_
#define PLINTH_COMM_TUNER_COST_H_

#include <cstdint>
#include <span>
#include <vector>

#include "plinth/comm/program/problem.h"
#include "plinth/comm/program/program.h"

namespace plinth::comm {

struct LinkCost {
  double alpha_us = 0;
  double mb_per_s = 1;

  bool operator==(const LinkCost&) const = default;
};

struct CostModel {
  LinkCost local;   // between ranks of one host
  LinkCost remote;  // between hosts
  LinkCost direct;  // of an operation through memory that all ranks share, as a whole
  double message_us = 0;
  double reduce_mb_per_s = 1;

  bool operator==(const CostModel&) const = default;
};

// How much data goes through a program.
struct Volume {
  // The larger of what a rank passes in and gets, which is the vector of all operations but
  // all_to_all (there: the blocks of one rank).
  int64_t bytes = 0;
  // Bytes of a partial sum for each byte of elements: 2 for bf16, which is summed in f32.
  double partial_ratio = 1;
};

// The loads of a program, from which its price follows for any volume and model.
class ProgramCost {
 public:
  // Of all ranks' programs, by rank; they are not kept.
  ProgramCost(const Problem& problem, std::span<const RankProgram> programs);

  // Microseconds. `pipelined` and `slices` as in slice.h.
  double Price(const CostModel& model, const Volume& volume, int slices, bool pipelined) const;
  // The most that a rank needs for its scratch slots.
  int64_t ScratchBytes(const Volume& volume, int slices, bool pipelined) const;
  double BlockBytes(const Volume& volume) const;
  int rounds() const { return rounds_; }

 private:
  // Of one rank over one kind of link in one round, in blocks.
  struct LinkLoad {
    int peers = 0;
    int sent = 0;
    int sent_partial = 0;
    int received = 0;
    int received_partial = 0;

    auto operator<=>(const LinkLoad&) const = default;
  };
  struct Load {
    LinkLoad local;
    LinkLoad remote;
    int read = 0;  // by computations
    int read_partial = 0;

    auto operator<=>(const Load&) const = default;
  };
  struct BlockSizes {
    double elements;
    double partial;
  };

  static Load LoadOf(const Round& round, int rank, int ranks_per_host);
  static void Count(const Round& round, int rank, int ranks_per_host, bool local, LinkLoad& load);
  static void Add(const Load& load, Load& sum);
  static void Add(const LinkLoad& load, LinkLoad& sum);
  static double PriceOf(const LinkLoad& load, const LinkCost& cost, double message_us,
                        const BlockSizes& sizes);
  static double PriceOf(const Load& load, const CostModel& model, const BlockSizes& sizes);

  int rounds_ = 0;
  int32_t scratch_slots_ = 0;   // the most of any rank
  double blocks_of_bytes_ = 1;  // how many blocks Volume::bytes are
  // By round; of ranks with equal loads throughout, one.
  std::vector<std::vector<Load>> ranks_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TUNER_COST_H_
