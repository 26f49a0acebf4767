#include "plinth/storage/checkpoint/catalog.h"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/storage/checkpoint/layout.h"
#include "plinth/storage/checkpoint/reader.h"
#include "plinth/storage/io/directory.h"
#include "plinth/storage/io/errno_status.h"

namespace plinth::storage {
namespace {

// Newest first.
std::vector<int64_t> Steps(const std::vector<std::string>& names) {
  std::vector<int64_t> steps;
  for (const std::string& name : names) {
    if (const std::optional<int64_t> step = ParseStepName(name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

}  // namespace

absl::StatusOr<FoundCheckpoint> FindLatest(const std::string& run_dir, bool verify_checksums) {
  const std::string dir = CheckpointsDir(run_dir);
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(dir));
  std::vector<std::string> skipped;
  for (const std::string& name : names) {
    if (name.starts_with(kTemporaryPrefix)) skipped.push_back(name + ": not committed");
  }
  const std::vector<int64_t> steps = Steps(names);
  for (const int64_t step : steps) {
    const std::string path = dir + "/" + StepName(step);
    const auto reader = CheckpointReader::Open(path);
    absl::Status status = reader.status();
    if (status.ok() && verify_checksums) status = (*reader)->Verify();
    if (status.ok()) return FoundCheckpoint{path, step, std::move(skipped)};
    skipped.push_back(StepName(step) + ": " + std::string(status.message()));
  }
  return absl::Status(steps.empty() ? absl::StatusCode::kNotFound : absl::StatusCode::kDataLoss,
                      dir + ": holds no complete checkpoint" +
                          (skipped.empty() ? "" : ": " + absl::StrJoin(skipped, "; ")));
}

absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::string& path) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
  const auto holds = [&names](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (holds(kManifestName)) {
    ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader, CheckpointReader::Open(path));
    return FoundCheckpoint{path, reader->state().step, {}};
  }
  if (holds(kCheckpointsName)) return FindLatest(path);
  return absl::NotFoundError(path + ": is neither a checkpoint (it has no " + kManifestName +
                             ") nor a run (it has no " + kCheckpointsName + "/)");
}

absl::Status CheckCanSave(const std::string& run_dir, Syscalls& syscalls) {
  // Left behind by a kill it is a temporary entry, which the next save deletes.
  const std::string probe = CheckpointsDir(run_dir) + "/" + kTemporaryPrefix + "probe";
  RETURN_IF_ERROR(MakeDirectories(probe, syscalls));
  return RemoveTree(probe, syscalls);
}

absl::Status KeepLast(const std::string& run_dir, int keep, Syscalls& syscalls) {
  CHECK_GE(keep, 1);
  const std::string dir = CheckpointsDir(run_dir);
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(dir));
  int kept = 0;
  for (const int64_t step : Steps(names)) {
    const std::string path = dir + "/" + StepName(step);
    if (kept < keep) {
      if (CheckpointReader::Open(path).ok()) ++kept;
      continue;
    }
    const std::string hidden = dir + "/" + kTemporaryPrefix + "old-" + StepName(step);
    RETURN_IF_ERROR(RemoveTree(hidden, syscalls));
    if (syscalls.Rename(path.c_str(), hidden.c_str()) != 0) {
      return ErrnoStatus(errno, path, "rename to " + hidden);
    }
    RETURN_IF_ERROR(RemoveTree(hidden, syscalls));
  }
  return absl::OkStatus();
}

}  // namespace plinth::storage
