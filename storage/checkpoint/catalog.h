// The checkpoints of a run: which is the newest good one, and which may go.
#ifndef PLINTH_STORAGE_CHECKPOINT_CATALOG_H_
#define PLINTH_STORAGE_CHECKPOINT_CATALOG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/storage/io/syscalls.h"

namespace plinth::storage {

struct FoundCheckpoint {
  std::string dir;
  int64_t step;
  // Newer entries that were passed over, "<name>: <why>", newest first; show them to the user.
  std::vector<std::string> skipped;
};

// The complete checkpoint with the highest step: one that CheckpointReader::Open accepts
// and, if asked, whose checksums all hold.
// Errors: kNotFound when nothing was ever committed: a run may begin. kDataLoss when there
// are checkpoints and none is good: beginning anew would hide that. The message tells what
// was passed over.
absl::StatusOr<FoundCheckpoint> FindLatest(const std::string& run_dir,
                                           bool verify_checksums = false);

// The same for a path that a user gives: a run, or one checkpoint, which is then the one.
// Errors: FindLatest's for a run, CheckpointReader::Open's for a checkpoint; kNotFound for a
// directory that is neither, saying what it lacks; those of ListDirectory when it is none.
absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::string& path);

// OK when a checkpoint of this run could be begun now: by making and removing a directory where
// they go. For the start of a run, which would otherwise learn it at its first save.
// Errors: those of ErrnoStatus, naming the path.
absl::Status CheckCanSave(const std::string& run_dir, Syscalls& syscalls = RealSyscalls());

// Deletes all but the `keep` newest complete checkpoints (and incomplete ones older than
// those). Each is renamed out of sight before its files go, so a kill leaves no half one.
// Requires keep >= 1. Call from one process, not during a save.
absl::Status KeepLast(const std::string& run_dir, int keep, Syscalls& syscalls = RealSyscalls());

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_CHECKPOINT_CATALOG_H_
