#include "plinth/hardware/perf/compute.h"

#include <dnnl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/perf/kernels.h"
#include "plinth/hardware/perf/pinned.h"
#include "plinth/hardware/perf/samples.h"

// Of libgomp, which oneDNN runs on. Declared here as clang does not come with gcc's omp.h.
extern "C" void omp_set_num_threads(int threads);

namespace plinth::perf {
namespace {

absl::Status CheckOptions(const ComputeOptions& options) {
  if (options.repetitions < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("repetitions: expected at least 1, got ", options.repetitions));
  }
  if (options.gemm_size < 1 || options.gemm_size > 16384) {
    return absl::InvalidArgumentError(
        absl::StrCat("gemm_size: expected 1 to 16384, got ", options.gemm_size));
  }
  return absl::OkStatus();
}

ComputeResult ToResult(std::vector<Sample> samples, size_t threads) {
  const Summary summary = Summarize(std::move(samples));
  return {.median_gflops = summary.median,
          .best_gflops = summary.best,
          .threads = static_cast<int>(threads),
          .samples = summary.samples,
          .disturbed = summary.disturbed};
}

// Square matrices, row-major; elements of both signs below one in magnitude.
struct Gemm {
  explicit Gemm(int64_t size)
      : n(size), a(size * size), b(size * size), c(size * size, std::nanf("")) {
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<float>(i % 17) / 17 - 0.5f;
      b[i] = static_cast<float>(i % 23) / 23 - 0.5f;
    }
  }

  absl::Status Run() {
    const dnnl_status_t status =
        dnnl_sgemm('N', 'N', n, n, n, 1.0f, a.data(), n, b.data(), n, 0.0f, c.data(), n);
    if (status == dnnl_success) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("dnnl_sgemm: status ", static_cast<int>(status)));
  }

  // The corners and the centre. Any order of n float additions errs by at most n roundings of
  // the sum of magnitudes.
  absl::Status Verify() const {
    for (const auto& [row, column] : {std::pair<int64_t, int64_t>{0, 0},
                                      {0, n - 1},
                                      {n - 1, 0},
                                      {n - 1, n - 1},
                                      {n / 2, n / 2}}) {
      double sum = 0, magnitude = 0;
      for (int64_t k = 0; k < n; ++k) {
        const double term = static_cast<double>(a[row * n + k]) * b[k * n + column];
        sum += term;
        magnitude += std::fabs(term);
      }
      const float got = c[row * n + column];
      if (!(std::fabs(got - sum) <= static_cast<double>(n) * 0x1p-23 * magnitude)) {
        return absl::InternalError(absl::StrCat("dnnl_sgemm: element (", row, ", ", column,
                                                "): expected ", sum, ", got ", got));
      }
    }
    return absl::OkStatus();
  }

  int64_t n;
  std::vector<float> a, b, c;
};

absl::StatusOr<ComputeResult> RunGemm(const ComputeOptions& options, const probe::CpuList& cpus) {
  RETURN_IF_ERROR(PinThisThread(cpus));  // the team inherits it
  omp_set_num_threads(static_cast<int>(cpus.size()));
  Gemm gemm(options.gemm_size);
  RETURN_IF_ERROR(gemm.Run());  // starts the team, and generates code
  RETURN_IF_ERROR(gemm.Verify());
  const double flops = 2 * std::pow(static_cast<double>(gemm.n), 3);
  std::vector<Sample> samples;
  for (int i = 0; i < options.repetitions; ++i) {
    const int64_t waited = RunQueueWaitNs();
    const auto start = std::chrono::steady_clock::now();
    RETURN_IF_ERROR(gemm.Run());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const double seconds = std::max(1e-9, took.count());
    samples.push_back({flops / seconds * 1e-9, IsDisturbed(RunQueueWaitNs() - waited, seconds)});
  }
  return ToResult(std::move(samples), cpus.size());
}

// Rounds that take some 20 ms on this CPU.
absl::StatusOr<int64_t> CalibrateFma(const probe::CpuList& cpus, std::atomic<float>* sink) {
  constexpr double kSeconds = 0.02;
  int64_t iterations = 1 << 16;
  while (true) {
    ASSIGN_OR_RETURN(const PinnedRun run,
                     RunPinned(cpus, [&](int) { sink->store(FmaLoop(iterations)); }));
    if (run.seconds >= kSeconds) return iterations;
    iterations *= run.seconds >= kSeconds / 8 ? 2 : 8;
  }
}

}  // namespace

absl::StatusOr<ComputeResult> MeasureGemmPeak(const ComputeOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(const probe::CpuList cpus, ChooseCpus(options.threads));
  // A thread of its own: OpenMP's settings, its team and the affinity belong to the caller's
  // thread otherwise, and would outlive this call.
  absl::StatusOr<ComputeResult> result = absl::InternalError("not run");
  try {
    std::thread([&] { result = RunGemm(options, cpus); }).join();
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot start a thread: ", error.what()));
  }
  return result;
}

absl::StatusOr<ComputeResult> MeasureFmaPeak(const ComputeOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(const probe::CpuList cpus, ChooseCpus(options.threads));
  std::atomic<float> sink{0};
  ASSIGN_OR_RETURN(const int64_t iterations, CalibrateFma(cpus, &sink));
  const double flops = static_cast<double>(iterations) *
                       static_cast<double>(FmaFlopsPerIteration()) *
                       static_cast<double>(cpus.size());
  std::vector<Sample> samples;
  for (int i = 0; i < options.repetitions; ++i) {
    ASSIGN_OR_RETURN(const PinnedRun run,
                     RunPinned(cpus, [&](int) { sink.store(FmaLoop(iterations)); }));
    samples.push_back({flops / run.seconds * 1e-9, run.disturbed});
  }
  return ToResult(std::move(samples), cpus.size());
}

}  // namespace plinth::perf
