// Directories, and commit by rename: a reader sees the old state or the new one, whole.
#ifndef PLINTH_STORAGE_IO_DIRECTORY_H_
#define PLINTH_STORAGE_IO_DIRECTORY_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/storage/io/syscalls.h"

namespace plinth::storage {

// Names (without path) in a directory, sorted. Errors: those of ErrnoStatus.
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);

// Creates `path` and its missing parents; an existing directory is fine. Each parent that
// gains an entry is fsynced.
absl::Status MakeDirectories(const std::string& path, Syscalls& syscalls = RealSyscalls());

// Makes the entries of a directory durable.
absl::Status SyncDirectory(const std::string& path, Syscalls& syscalls = RealSyscalls());

// Deletes a file or a directory tree without following links. Absent is fine.
absl::Status RemoveTree(const std::string& path, Syscalls& syscalls = RealSyscalls());

// Publishes the finished directory `from` as `to`, in the same parent: fsyncs `from`, renames,
// fsyncs the parent. Every file inside must have been fsynced before. When `to` exists the
// two are exchanged in one step and the old one is deleted, so that no moment has neither.
// On error `to` is still the old one or absent, except when only the last fsync or the
// deletion failed: then `to` is already the new one.
absl::Status CommitDirectory(const std::string& from, const std::string& to,
                             Syscalls& syscalls = RealSyscalls());

// Replaces the file `path`: `write` makes and fsyncs a file at the path it is given
// (".tmp-<name>" beside `path`), which is then renamed, and the directory fsynced. On error
// the old file is untouched and no temporary one stays (unless deleting it fails too). A device
// or a link at `path` is left alone: kInvalidArgument.
absl::Status ReplaceFile(const std::string& path,
                         const std::function<absl::Status(const std::string& temporary)>& write,
                         Syscalls& syscalls = RealSyscalls());

// ReplaceFile with these bytes.
absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes,
                                 Syscalls& syscalls = RealSyscalls());

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_IO_DIRECTORY_H_
