#include "plinth/train/metrics/reporter.h"

#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "plinth/hardware/base/log.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/storage/io/directory.h"

namespace plinth::train {
namespace {

std::string ReadIfPresent(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return text.str();
}

}  // namespace

std::string RecordsUpTo(const std::string& lines, int64_t last_step) {
  std::string kept;
  size_t begin = 0;
  for (size_t end; (end = lines.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const absl::string_view line(lines.data() + begin, end - begin);
    absl::string_view rest = line;
    int64_t step = 0;
    if (!absl::ConsumePrefix(&rest, "{\"step\":")) continue;
    if (!absl::SimpleAtoi(rest.substr(0, rest.find(',')), &step) || step > last_step) continue;
    kept.append(line.data(), line.size() + 1);
  }
  return kept;
}

absl::StatusOr<std::unique_ptr<Reporter>> Reporter::Create(const Options& options) {
  const std::string events_dir = options.run_dir + "/tensorboard";
  RETURN_IF_ERROR(storage::MakeDirectories(events_dir));
  const std::string path = options.run_dir + "/metrics.jsonl";
  const std::string before = ReadIfPresent(path);
  const std::string kept = RecordsUpTo(before, options.resumed_step);
  if (kept != before) RETURN_IF_ERROR(storage::WriteFileAtomically(path, kept));
  ASSIGN_OR_RETURN(AppendFile json, AppendFile::Open(path));
  ASSIGN_OR_RETURN(EventWriter events, EventWriter::Create(events_dir));
  return std::unique_ptr<Reporter>(new Reporter(options, std::move(json), std::move(events)));
}

Reporter::Reporter(const Options& options, AppendFile json, EventWriter events)
    : options_(options), json_(std::move(json)), events_(std::move(events)) {}

Reporter::~Reporter() { FinishLine(); }

void Reporter::Report(const StepRecord& record) {
  Keep(record);
  Show(record);
}

void Reporter::FinishLine() {
  if (shown_width_ > 0) std::fputc('\n', stderr);
  shown_width_ = 0;
}

void Reporter::Keep(const StepRecord& record) {
  const double now = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  absl::Status status = json_.Append(ToJson(record, now) + "\n");
  status.Update(events_.Write(record.step, ToScalars(record)));
  if (status.ok() || warned_) return;
  warned_ = true;
  FinishLine();
  LOG(WARNING) << "metrics are not kept from step " << record.step
               << " on: " << std::string(status.message());
}

void Reporter::Show(const StepRecord& record) {
  const bool milestone = record.eval.has_value() || record.step == record.steps;
  std::string line = ToLine(record);
  if (options_.terminal) {
    const size_t width = line.size();
    if (width < shown_width_) line.append(shown_width_ - width, ' ');
    std::fprintf(stderr, "\r%s", line.c_str());
    shown_width_ = width;
    if (milestone) FinishLine();
    std::fflush(stderr);
    return;
  }
  const absl::Time now = absl::Now();
  if (!milestone && now - last_line_ < options_.line_interval) return;
  last_line_ = now;
  std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace plinth::train
