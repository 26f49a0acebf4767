// The metrics of a training run, for a page that follows them.
#ifndef PLINTH_INFER_SERVE_METRICS_TRAINING_LOG_H_
#define PLINTH_INFER_SERVE_METRICS_TRAINING_LOG_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace plinth::infer {

struct TrainingLines {
  std::string lines;        // whole lines, each with its newline
  int64_t next_offset = 0;  // where to go on
};

// Lines of <run_dir>/metrics.jsonl from a byte offset on, at most `max_bytes` of them (a
// longer single line is passed over). A line still being written waits for the next call.
// An offset beyond the end reads from the start: the run has begun anew.
// kNotFound: no such file, or `run_dir` is empty; kInvalidArgument: a negative offset.
absl::StatusOr<TrainingLines> ReadTrainingLines(const std::string& run_dir, int64_t offset,
                                                int64_t max_bytes);

}  // namespace plinth::infer

#endif  // PLINTH_INFER_SERVE_METRICS_TRAINING_LOG_H_
