// Names of files and directories of a run's checkpoints (FORMAT.md).
#ifndef PLINTH_STORAGE_CHECKPOINT_LAYOUT_H_
#define PLINTH_STORAGE_CHECKPOINT_LAYOUT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plinth::storage {

inline constexpr char kManifestName[] = "manifest.pb";
inline constexpr char kCheckpointsName[] = "checkpoints";
// Everything uncommitted or being deleted starts with this; readers skip it, and the next
// save deletes it.
inline constexpr char kTemporaryPrefix[] = ".tmp-";

// <run>/checkpoints
std::string CheckpointsDir(const std::string& run_dir);
// "step-00000040". Requires step >= 0.
std::string StepName(int64_t step);
// Inverse: nothing for any other text, also for a number that StepName pads otherwise.
std::optional<int64_t> ParseStepName(std::string_view name);
// "model-00002.safetensors"
std::string ShardName(std::string_view group, int rank);
// "part-00002.pb": what rank 2 wrote, until the commit.
std::string PartName(int rank);

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_CHECKPOINT_LAYOUT_H_
