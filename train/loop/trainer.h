// Trainer: a whole run, from a config to a checkpoint, on one of its ranks.
#ifndef PLINTH_TRAIN_LOOP_TRAINER_H_
#define PLINTH_TRAIN_LOOP_TRAINER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plinth/comm/comm.h"
#include "plinth/config/run.pb.h"
#include "plinth/hardware/device/allocator.h"
#include "plinth/hardware/device/device.h"
#include "plinth/hardware/kernels/kernel.h"
#include "plinth/models/nn/model.h"
#include "plinth/storage/io/directory_lock.h"
#include "plinth/storage/io/syscalls.h"
#include "plinth/train/loop/run_data.h"
#include "plinth/train/loop/train_step.h"
#include "plinth/train/metrics/reporter.h"
#include "plinth/train/metrics/step_record.h"

namespace plinth::train {

struct TrainerOptions {
  config::RunConfig config;  // complete and valid (config/loader)
  int ranks_on_host = 1;     // share this host's CPUs when config.hardware.threads is 0
  // Asked before each step; true stops the run of all ranks. Null = never.
  std::function<bool()> stop;
  // Measure at the start what this host's CPUs could do, to report utilisation against.
  bool measure_peak = false;
  bool terminal = false;  // stderr is one, and may be rewritten
  storage::Syscalls* syscalls = &storage::RealSyscalls();
};

enum class TrainEnd {
  kFinished,  // all steps are done; the last checkpoint holds them
  kStopped,   // stop was asked for; the last checkpoint holds what was done so far
};

// Every rank makes one and runs it. Goes on from the newest complete checkpoint of the run
// directory if there is one, and then gives the same weights, bit for bit, as a run that was
// never interrupted with the same number of ranks.
// Owns     everything on the device.
// Threads  used by one thread.
// Errors   what one rank cannot do, all ranks return. kFailedPrecondition when another training
//          uses the run directory. A periodic checkpoint that cannot be
//          written (a full disk) is logged and training goes on, its state intact and older
//          checkpoints untouched; if the last one cannot be written, Run returns the error.
class Trainer {
 public:
  // `comm` outlives the trainer. kInvalidArgument when the ranks do not divide the global
  // batch: names the nearest numbers of ranks that do.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(const TrainerOptions& options,
                                                         comm::Communicator* comm);

  absl::StatusOr<TrainEnd> Run();

  int64_t steps_done() const { return steps_done_; }
  const models::LanguageModel& model() const { return *model_; }
  // Of the last step or evaluation of this process; nothing when there was none.
  const std::optional<StepRecord>& last_record() const { return last_record_; }

 private:
  Trainer(const TrainerOptions& options, comm::Communicator* comm, std::unique_ptr<Device> device,
          int threads);

  const config::TrainConfig& config() const { return options_.config.train(); }
  bool leader() const { return comm_->rank() == 0; }
  bool Due(int64_t every) const { return every > 0 && steps_done_ % every == 0; }

  absl::Status Open();
  // Makes the model and its optimizer: from the newest checkpoint, or fresh.
  absl::Status Resume();
  absl::Status Restore(int64_t step);
  absl::StatusOr<bool> AnyRankStops();
  absl::Status RunStep();
  absl::StatusOr<EvalRecord> Evaluate();
  // Writes a checkpoint of this moment, unless there is one.
  absl::Status Save();

  const TrainerOptions options_;
  comm::Communicator* const comm_;
  storage::DirectoryLock lock_;  // rank 0: of the run directory
  // Each uses those above it.
  std::unique_ptr<Device> device_;
  CachingAllocator allocator_;
  Threads threads_;
  std::unique_ptr<Stream> stream_;
  KernelContext ctx_;
  RunData data_;
  std::unique_ptr<models::LanguageModel> model_;
  std::unique_ptr<TrainStep> step_;
  std::unique_ptr<Reporter> reporter_;  // on rank 0

  double flops_per_token_ = 0;
  double peak_flops_ = 0;  // rank 0: of all ranks' CPUs, per second; 0 = unknown
  int64_t position_ = 0;   // samples consumed by all ranks since the run began
  int64_t steps_done_ = 0;
  int64_t steps_saved_ = -1;  // rank 0: of the last checkpoint; -1 = none
  absl::Duration step_time_;  // smoothed; zero before the first step
  std::optional<StepRecord> last_record_;
};

// OK when `ranks` ranks can share a global batch in micro-batches; else kInvalidArgument.
absl::Status CheckRanks(int64_t global_batch, int64_t micro_batch, int64_t ranks);

}  // namespace plinth::train

#endif  // PLINTH_TRAIN_LOOP_TRAINER_H_
