// bazel run //hardware:perf [-- --threads=2] [-- --json]

#include <boost/json.hpp>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "plinth/hardware/base/program.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/perf/bandwidth.h"
#include "plinth/hardware/perf/compute.h"
#include "plinth/hardware/perf/kernels.h"

ABSL_FLAG(bool, json, false, "Print one JSON object (plinth.perf.v1) instead of a table.");
ABSL_FLAG(int, threads, 0, "Threads, each on a CPU of its own; 0 uses what the limits allow.");
ABSL_FLAG(int, repetitions, 9, "Times each figure is measured; the median and the best are shown.");
ABSL_FLAG(uint64_t, bytes, 0,
          "Buffer for the memory figures; 0 takes 4 times the last-level caches, >= 256 MiB.");
ABSL_FLAG(int64_t, gemm_size, 2048, "Rows, columns and depth of the matrix product.");

namespace plinth::perf {
namespace {

namespace json = boost::json;

struct PerfReport {
  BandwidthResult read, copy;
  ComputeResult fma, gemm;
};

void Progress(const char* what) {
  if (!absl::GetFlag(FLAGS_json)) std::fprintf(stderr, "measuring %s ...\n", what);
}

absl::StatusOr<PerfReport> MeasureAll() {
  const int threads = absl::GetFlag(FLAGS_threads);
  const int repetitions = absl::GetFlag(FLAGS_repetitions);
  const ComputeOptions compute{
      .threads = threads, .repetitions = repetitions, .gemm_size = absl::GetFlag(FLAGS_gemm_size)};
  PerfReport report;
  Progress("memory bandwidth");
  ASSIGN_OR_RETURN(
      const std::unique_ptr<MemoryProbe> memory,
      MemoryProbe::Create(
          {.threads = threads, .bytes = absl::GetFlag(FLAGS_bytes), .repetitions = repetitions}));
  ASSIGN_OR_RETURN(report.read, memory->Read());
  ASSIGN_OR_RETURN(report.copy, memory->Copy());
  Progress("arithmetic");
  ASSIGN_OR_RETURN(report.fma, MeasureFmaPeak(compute));
  ASSIGN_OR_RETURN(report.gemm, MeasureGemmPeak(compute));
  return report;
}

json::object ToObject(const BandwidthResult& r) {
  return {{"median_gbps", r.median_gbps},
          {"best_gbps", r.best_gbps},
          {"bytes", r.bytes},
          {"samples", r.samples},
          {"disturbed", r.disturbed}};
}
json::object ToObject(const ComputeResult& r) {
  return {{"median_gflops", r.median_gflops},
          {"best_gflops", r.best_gflops},
          {"samples", r.samples},
          {"disturbed", r.disturbed}};
}

std::string ToJson(const PerfReport& r) {
  return json::serialize(json::object{{"schema", "plinth.perf.v1"},
                                      {"threads", r.read.threads},
                                      {"instruction_set", InstructionSet()},
                                      {"memory_read", ToObject(r.read)},
                                      {"memory_copy", ToObject(r.copy)},
                                      {"fma_f32", ToObject(r.fma)},
                                      {"gemm_f32", ToObject(r.gemm)}}) +
         "\n";
}

std::string Row(const char* label, double median, double best, const char* unit, int samples,
                int disturbed) {
  return absl::StrFormat("%-22s %9.1f %9.1f  %-8s %d%s\n", label, median, best, unit, samples,
                         disturbed > 0 ? absl::StrFormat(" (%d disturbed)", disturbed) : "");
}
std::string Row(const char* label, const BandwidthResult& r) {
  return Row(label, r.median_gbps, r.best_gbps, "GB/s", r.samples, r.disturbed);
}
std::string Row(const char* label, const ComputeResult& r) {
  return Row(label, r.median_gflops, r.best_gflops, "GFLOP/s", r.samples, r.disturbed);
}

std::string ToTable(const PerfReport& r) {
  std::string text =
      absl::StrFormat("%d thread%s, %s, %d MiB buffer\n\n%-22s %9s %9s  %-8s %s\n", r.read.threads,
                      r.read.threads == 1 ? "" : "s", InstructionSet(), r.read.bytes >> 20, "",
                      "median", "best", "", "samples");
  text += Row("memory read", r.read);
  text += Row("memory copy (rd + wr)", r.copy);
  text += Row("multiply-add, f32", r.fma);
  text += Row("matrix product, f32", r.gemm);
  const bool disturbed =
      r.read.disturbed + r.copy.disturbed + r.fma.disturbed + r.gemm.disturbed > 0;
  text += disturbed
              ? std::string(
                    "\nDisturbed: other programs used these CPUs meanwhile; such "
                    "samples say little.\nRepeat on a quiet machine.\n")
              : absl::StrFormat("\nThe matrix product reaches %.0f %% of the multiply-add peak.\n",
                                100 * r.gemm.best_gflops / r.fma.best_gflops);
  return text;
}

absl::StatusOr<std::string> Run() {
  ASSIGN_OR_RETURN(const PerfReport report, MeasureAll());
  return absl::GetFlag(FLAGS_json) ? ToJson(report) : ToTable(report);
}

}  // namespace
}  // namespace plinth::perf

int main(int argc, char** argv) {
  plinth::SetProgramHelp(
      "Measures what this machine gives now: memory bandwidth and f32 arithmetic.\n"
      "  bazel run //hardware:perf\n"
      "  bazel run //hardware:perf -- --json --threads=1");
  plinth::ParseFlagsOnly("perf", argc, argv);
  return plinth::PrintReport("perf", plinth::perf::Run());
}
