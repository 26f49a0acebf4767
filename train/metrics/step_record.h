// What training reports of a step, and the ways in which it is shown and kept.
#ifndef PLINTH_TRAIN_METRICS_STEP_RECORD_H_
#define PLINTH_TRAIN_METRICS_STEP_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plinth/train/metrics/event_writer.h"

namespace plinth::train {

struct EvalRecord {
  double loss = 0;           // nats per token
  double bits_per_byte = 0;  // of the held-out text; 0 = its size is unknown
};

struct StepRecord {
  int64_t step = 0;   // finished, counted from 1
  int64_t steps = 0;  // of the whole run
  double loss = 0;    // nats per token of this step's global batch, before the update
  double gradient_norm = 0;
  double learning_rate = 0;
  int64_t tokens = 0;  // trained on since the run began, all ranks
  double tokens_per_second = 0;
  double flops_per_second = 0;  // of the model's arithmetic, all ranks; 0 = unknown
  double mfu = 0;  // model FLOPs utilisation: of the measured peak, in [0, 1]; 0 = unknown
  double seconds_left = 0;
  std::optional<EvalRecord> eval;
};

// One line of metrics.jsonl, without the newline: a JSON object with the names above.
// Non-finite numbers become null.
std::string ToJson(const StepRecord& record, double wall_time_seconds);

// "train/loss" ..., for TensorBoard.
std::vector<Scalar> ToScalars(const StepRecord& record);

// "step 120/2000  loss 3.214  12.3k tok/s  41.0GFLOP/s (52% MFU)  |g| 0.71  lr 3.0e-04  4m10s
// left".
std::string ToLine(const StepRecord& record);

}  // namespace plinth::train

#endif  // PLINTH_TRAIN_METRICS_STEP_RECORD_H_
