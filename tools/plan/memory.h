// Device memory that training and serving take, found by running them on a CountingDevice.
#ifndef PLINTH_TOOLS_PLAN_MEMORY_H_
#define PLINTH_TOOLS_PLAN_MEMORY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "plinth/config/model.pb.h"
#include "plinth/config/run.pb.h"

namespace plinth::tools {

// Bytes of one rank, in blocks as the allocator hands them out. With data parallelism alone
// every rank holds the same.
struct TrainMemory {
  int64_t weights = 0;
  int64_t gradients = 0;
  int64_t moments = 0;      // both of AdamW's
  int64_t activations = 0;  // kept by the forward pass of a micro-batch for backward
  int64_t logits = 0;       // of the rows that exist at once
  int64_t peak = 0;         // most at any moment of a step; all of the above and temporaries

  // Collectives work on the gradients themselves; where the host cannot read the device, they
  // go through as many bytes of host memory.
  int64_t buckets = 0;
  int64_t largest_bucket = 0;  // bytes
};
// One step of one micro-batch. Needs train.sequence_length and train.micro_batch > 0.
// Errors   those of models::CreateModel.  Cost: microseconds per layer, whatever its size.
absl::StatusOr<TrainMemory> PlanTraining(const config::RunConfig& config);

// Bytes of a serving process, likewise.
struct ServeMemory {
  int64_t weights = 0;  // as loaded
  int64_t packed = 0;   // copies that the products read
  int64_t cache = 0;    // keys and values of serve.kv_tokens tokens, f32
  int64_t peak = 0;     // with the temporaries of a full step
};
// Expects filled defaults.
absl::StatusOr<ServeMemory> PlanServing(const config::RunConfig& config);

}  // namespace plinth::tools

#endif  // PLINTH_TOOLS_PLAN_MEMORY_H_
