// Saving and restoring what training changes: weights, moments and the place in the data.
#ifndef PLINTH_TRAIN_LOOP_CHECKPOINT_H_
#define PLINTH_TRAIN_LOOP_CHECKPOINT_H_

#include <string>

#include "absl/status/status.h"
#include "plinth/hardware/device/device.h"
#include "plinth/storage/checkpoint/reader.h"
#include "plinth/storage/checkpoint/trainer_state.h"
#include "plinth/storage/io/syscalls.h"
#include "plinth/train/loop/train_step.h"

namespace plinth::train {

// Groups of tensors: "model" holds parameters under their names, "optim" their moments as
// "<name>.m" and "<name>.v".
//
// Writes <run_dir>/checkpoints/step-N; called by one rank, all ranks holding the same state.
// `tokenizer_json` travels along, so that the checkpoint can be served alone. On an error (a
// full disk) nothing that was there before is lost, and training may go on.
// Host memory: a copy of the state on devices whose memory the host cannot read.
absl::Status SaveCheckpoint(const std::string& run_dir, const storage::TrainerState& state,
                            const std::string& tokenizer_json, const TrainStep& step,
                            Stream& stream, storage::Syscalls& syscalls = storage::RealSyscalls());

// Fills weights and moments from a checkpoint, comparing every checksum. kFailedPrecondition
// names the first tensor that is missing or has another shape.
absl::Status RestoreCheckpoint(const storage::CheckpointReader& reader, const TrainStep& step,
                               Stream& stream);

}  // namespace plinth::train

#endif  // PLINTH_TRAIN_LOOP_CHECKPOINT_H_
