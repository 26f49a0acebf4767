#include "plinth/tools/bench/limits.h"

#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/perf/compute.h"

namespace plinth::tools {
namespace {

// Few, so that the figure is one of this moment.
constexpr int kRepetitions = 3;

}  // namespace

absl::StatusOr<LimitProbe> LimitProbe::Create(int threads, uint64_t bytes) {
  ASSIGN_OR_RETURN(
      auto memory,
      perf::MemoryProbe::Create({.threads = threads, .bytes = bytes, .repetitions = kRepetitions}));
  return LimitProbe(threads, std::move(memory));
}

absl::StatusOr<double> LimitProbe::ReadGbps() {
  ASSIGN_OR_RETURN(const perf::BandwidthResult result, memory_->Read());
  disturbed_ |= result.disturbed > 0;
  return result.median_gbps;
}

absl::StatusOr<double> LimitProbe::FmaGflops() {
  ASSIGN_OR_RETURN(const perf::ComputeResult result,
                   perf::MeasureFmaPeak({.threads = threads_, .repetitions = kRepetitions}));
  disturbed_ |= result.disturbed > 0;
  return result.median_gflops;
}

}  // namespace plinth::tools
