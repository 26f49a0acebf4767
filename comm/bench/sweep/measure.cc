#include "plinth/comm/bench/sweep/measure.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <utility>

#include "plinth/comm/call/buffer.h"
#include "plinth/comm/reduce/reduce.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/perf/pinned.h"

namespace plinth::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCalibrationCalls = 4;
constexpr double kMostCallsPerBatch = 1e5;

// The slowest rank's time, and whether any was disturbed, on all ranks.
absl::StatusOr<BatchSample> TimeBatch(Communicator& comm, const TimedCalls& call, int calls) {
  RETURN_IF_ERROR(comm.Barrier());
  const int64_t waited_before = perf::RunQueueWaitNs();
  ASSIGN_OR_RETURN(const double seconds, call(calls));
  const bool disturbed =
      perf::IsDisturbed(perf::RunQueueWaitNs() - waited_before, std::max(seconds, 1e-9));
  std::array<double, 2> worst = {seconds * 1e6 / calls, disturbed ? 1.0 : 0.0};
  RETURN_IF_ERROR(comm.AllReduce(BufferOf(std::span<double>(worst)), ReduceOp::kMax));
  return BatchSample{worst[0], worst[1] > 0};
}

absl::StatusOr<int> CallsPerBatch(Communicator& comm, const TimedCalls& call,
                                  const MeasurePlan& plan) {
  if (plan.warm_up_calls > 0) RETURN_IF_ERROR(call(plan.warm_up_calls).status());
  if (plan.batch_length <= absl::ZeroDuration()) return 1;
  ASSIGN_OR_RETURN(const BatchSample sample, TimeBatch(comm, call, kCalibrationCalls));
  const double fit = absl::ToDoubleMicroseconds(plan.batch_length) / std::max(sample.us, 1e-3);
  return static_cast<int>(std::clamp(fit, 1.0, kMostCallsPerBatch));
}

// Nearest rank of sorted values.
double Percentile(const std::vector<double>& sorted, double p) {
  return sorted[static_cast<size_t>(p * static_cast<double>(sorted.size() - 1) + 0.5)];
}

}  // namespace

Timing Summarize(const std::vector<BatchSample>& samples) {
  CHECK(!samples.empty());
  std::vector<double> all, kept;
  for (const BatchSample& sample : samples) {
    all.push_back(sample.us);
    if (!sample.disturbed) kept.push_back(sample.us);
  }
  Timing timing{.batches = static_cast<int>(all.size()),
                .disturbed = static_cast<int>(all.size() - kept.size())};
  std::vector<double>& used = 2 * kept.size() >= all.size() ? kept : all;
  std::sort(used.begin(), used.end());
  timing.median_us = Percentile(used, 0.5);
  timing.p10_us = Percentile(used, 0.1);
  timing.p90_us = Percentile(used, 0.9);
  return timing;
}

double MedianRatio(const std::vector<BatchSample>& ours, const std::vector<BatchSample>& theirs) {
  CHECK_EQ(ours.size(), theirs.size());
  std::vector<BatchSample> ratios;
  for (size_t i = 0; i < ours.size(); ++i) {
    ratios.push_back({theirs[i].us / ours[i].us, ours[i].disturbed || theirs[i].disturbed});
  }
  return Summarize(ratios).median_us;
}

TimedCalls InLoop(std::function<absl::Status()> call) {
  return [call = std::move(call)](int calls) -> absl::StatusOr<double> {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < calls; ++i) RETURN_IF_ERROR(call());
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
}

absl::StatusOr<std::vector<std::vector<BatchSample>>> TimeInTurns(Communicator& comm,
                                                                  std::span<const TimedCalls> calls,
                                                                  const MeasurePlan& plan) {
  CHECK_GE(plan.batches, 1);
  std::vector<int> per_batch;
  for (const TimedCalls& call : calls) {
    ASSIGN_OR_RETURN(const int count, CallsPerBatch(comm, call, plan));
    per_batch.push_back(count);
  }
  std::vector<std::vector<BatchSample>> samples(calls.size());
  for (int batch = 0; batch < plan.batches; ++batch) {
    for (size_t i = 0; i < calls.size(); ++i) {
      ASSIGN_OR_RETURN(BatchSample sample, TimeBatch(comm, calls[i], per_batch[i]));
      sample.disturbed &= plan.cpu_for_each_rank;
      samples[i].push_back(sample);
    }
  }
  return samples;
}

}  // namespace plinth::comm
