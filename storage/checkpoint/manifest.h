// The manifest's bytes, and what must hold inside one.
#ifndef PLINTH_STORAGE_CHECKPOINT_MANIFEST_H_
#define PLINTH_STORAGE_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/storage/checkpoint/box.h"
#include "plinth/storage/checkpoint/manifest.pb.h"
#include "plinth/storage/checkpoint/trainer_state.h"

namespace plinth::storage {

inline constexpr uint32_t kCheckpointFormatVersion = 1;

// The file: the message with its version and its checksum as last field. Equal messages give
// equal bytes.
std::string EncodeManifest(CheckpointManifest manifest);

// Errors, each naming `path`: kDataLoss for bytes that are cut or changed; kUnimplemented
// for another format version; kInvalidArgument when something inside contradicts itself.
absl::StatusOr<CheckpointManifest> DecodeManifest(std::string_view bytes, const std::string& path);

// kInvalidArgument unless file names are plain and unique, dtypes are known, and the slices
// of every tensor tile it.
absl::Status ValidateManifest(const CheckpointManifest& manifest);

Box BoxOf(const SliceRecord& slice);

void StoreState(const TrainerState& state, CheckpointManifest* manifest);
TrainerState LoadState(const CheckpointManifest& manifest);

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_CHECKPOINT_MANIFEST_H_
