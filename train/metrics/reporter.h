// Reporter: shows each step to a person and keeps it for programs.
#ifndef PLINTH_TRAIN_METRICS_REPORTER_H_
#define PLINTH_TRAIN_METRICS_REPORTER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plinth/train/metrics/append_file.h"
#include "plinth/train/metrics/event_writer.h"
#include "plinth/train/metrics/step_record.h"

namespace plinth::train {

// Every record becomes a line of <run_dir>/metrics.jsonl and a TensorBoard event in
// <run_dir>/tensorboard. On a terminal, stderr shows one line that is rewritten; elsewhere a
// line at the first and last step, at evaluations, and every `line_interval` between them.
// A file that cannot be written (a full disk) is warned of once and does not stop training.
// Threads  used by one thread.
class Reporter {
 public:
  struct Options {
    std::string run_dir;
    // Steps of the checkpoint that the run goes on from. Records of later steps, which a killed
    // run left, are removed, so that the file has each step once.
    int64_t resumed_step = 0;
    bool terminal = false;
    absl::Duration line_interval = absl::Seconds(10);
  };

  // Creates the directories and files. Errors name the path.
  static absl::StatusOr<std::unique_ptr<Reporter>> Create(const Options& options);
  // Leaves the terminal on a fresh line.
  ~Reporter();

  void Report(const StepRecord& record);
  // Ends a line that is being rewritten, before something else writes to stderr.
  void FinishLine();

 private:
  Reporter(const Options& options, AppendFile json, EventWriter events);
  void Keep(const StepRecord& record);
  void Show(const StepRecord& record);

  const Options options_;
  AppendFile json_;
  EventWriter events_;
  bool warned_ = false;
  size_t shown_width_ = 0;  // characters of the line on the terminal now
  absl::Time last_line_ = absl::InfinitePast();
};

// The lines of a metrics file whose step is at most `last_step`; a cut last line is dropped.
std::string RecordsUpTo(const std::string& lines, int64_t last_step);

}  // namespace plinth::train

#endif  // PLINTH_TRAIN_METRICS_REPORTER_H_
