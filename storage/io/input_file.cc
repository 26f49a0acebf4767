#include "plinth/storage/io/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace plinth::storage {

absl::StatusOr<InputFile> InputFile::Open(const std::string& path) {
  // Opening a pipe must not wait for its other end.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, path + ": cannot open");
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    const int error = errno;
    ::close(fd);
    return absl::ErrnoToStatus(error, path + ": cannot read its size");
  }
  InputFile file(path, fd, info.st_size);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(path + ": is not a regular file");
  }
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

absl::Status InputFile::Append(int64_t offset, int64_t bytes, std::string* text) const {
  const size_t begin = text->size();
  text->resize(begin + static_cast<size_t>(bytes));
  int64_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        ::pread(fd_, text->data() + begin + done, static_cast<size_t>(bytes - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, path_ + ": cannot read");
    if (got == 0) {
      return absl::DataLossError(absl::StrCat(path_, ": became shorter while it was read: ",
                                              offset + done, " bytes, expected ", size_));
    }
    done += got;
  }
  return absl::OkStatus();
}

}  // namespace plinth::storage
