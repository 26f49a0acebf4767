// How long calls take that all ranks make together: batches of calls, medians over batches.
#ifndef PLINTH_COMM_BENCH_SWEEP_MEASURE_H_
#define PLINTH_COMM_BENCH_SWEEP_MEASURE_H_

#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plinth/comm/collective/communicator.h"

namespace plinth::comm {

struct MeasurePlan {
  int batches = 9;
  // A batch is as many calls as take about that long, at least one.
  absl::Duration batch_length = absl::Milliseconds(20);
  int warm_up_calls = 3;
  // Whether each rank has a CPU to itself; else waiting for one is part of what is measured.
  bool cpu_for_each_rank = true;
};

struct BatchSample {
  double us = 0;  // per call, of the slowest rank
  // Some rank stood in the run queue for 2 % of the batch or more: other programs ran on our
  // CPUs. Never set without a CPU for each rank.
  bool disturbed = false;
};

struct Timing {
  double median_us = 0;
  double p10_us = 0;
  double p90_us = 0;
  int batches = 0;    // taken
  int disturbed = 0;  // of them; left out above unless that leaves less than half
};

// REQUIRES: at least one sample.
Timing Summarize(const std::vector<BatchSample>& samples);

// Median over rounds of theirs / ours: above 1 when ours is faster. Rounds with a disturbed batch
// are left out as above. REQUIRES: equally many of both, at least one.
double MedianRatio(const std::vector<BatchSample>& ours, const std::vector<BatchSample>& theirs);

// Makes so many calls in a row and returns the seconds that they took this rank.
using TimedCalls = std::function<absl::StatusOr<double>(int calls)>;
// Of calls in this process.
TimedCalls InLoop(std::function<absl::Status()> call);

// Times several ways of doing the same in turns, A B A B ..., so that all see the same machine.
// Every rank calls it with the same calls in the same order; all get the same samples, by call.
// Errors: those of the calls and of the communicator, by which ranks wait for each other before
// each batch.
absl::StatusOr<std::vector<std::vector<BatchSample>>> TimeInTurns(Communicator& comm,
                                                                  std::span<const TimedCalls> calls,
                                                                  const MeasurePlan& plan);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_SWEEP_MEASURE_H_
