#include "plinth/storage/io/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "plinth/hardware/base/log.h"
#include "plinth/storage/io/errno_status.h"

namespace plinth::storage {

absl::StatusOr<DirectoryLock> DirectoryLock::Acquire(const std::string& directory) {
  const std::string path = directory + "/.lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, path, "open");
  DirectoryLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno == EWOULDBLOCK) {
    return absl::FailedPreconditionError(directory + ": another process is writing to it");
  }
  LOG(WARNING) << path << ": cannot be locked: " << std::strerror(errno);
  return lock;
}

DirectoryLock::DirectoryLock(DirectoryLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

DirectoryLock& DirectoryLock::operator=(DirectoryLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

DirectoryLock::~DirectoryLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace plinth::storage
