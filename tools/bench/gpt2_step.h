// One training step of GPT-2 on random tokens: forward, backward, AdamW.
#ifndef PLINTH_TOOLS_BENCH_GPT2_STEP_H_
#define PLINTH_TOOLS_BENCH_GPT2_STEP_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "plinth/config/model.pb.h"

namespace plinth::tools {

struct StepTime {
  double seconds = 0;
  double loss = 0;  // nats per token, before the update
};

// The same kernels, tape and optimizer as train/loop, on one rank of the CPU. Gradients are not
// clipped: the peer does not clip either. Used by one thread.
class Gpt2Step {
 public:
  // Errors: those of models::CreateModel.
  static absl::StatusOr<std::unique_ptr<Gpt2Step>> Create(const config::ModelConfig& model,
                                                          int64_t batch, int64_t tokens,
                                                          int threads);
  virtual ~Gpt2Step() = default;

  // A fresh random batch each time. The clock runs from the forward pass to the last update.
  virtual absl::StatusOr<StepTime> Run() = 0;
};

}  // namespace plinth::tools

#endif  // PLINTH_TOOLS_BENCH_GPT2_STEP_H_
