// DirectoryLock: one writer of a directory at a time.
#ifndef PLINTH_STORAGE_IO_DIRECTORY_LOCK_H_
#define PLINTH_STORAGE_IO_DIRECTORY_LOCK_H_

#include <string>

#include "absl/status/statusor.h"

namespace plinth::storage {

// Holds flock(2) on "<directory>/.lock" until destruction. The file stays, but the lock ends
// with its process, however that ends, so nothing has to be cleaned up after a kill.
// Owns     the descriptor; not inherited by programs that are started.
// Threads  thread-compatible.
class DirectoryLock {
 public:
  // Does not wait. kFailedPrecondition when another holder lives, in this process or another;
  // those of ErrnoStatus when the file cannot be opened. Where the file system knows no locks,
  // a warning is logged and the directory is not protected.
  static absl::StatusOr<DirectoryLock> Acquire(const std::string& directory);

  DirectoryLock() = default;  // holds nothing
  DirectoryLock(DirectoryLock&& other) noexcept;
  DirectoryLock& operator=(DirectoryLock&& other) noexcept;
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int fd) : fd_(fd) {}

  int fd_ = -1;
};

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_IO_DIRECTORY_LOCK_H_
