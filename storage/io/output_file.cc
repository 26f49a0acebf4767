#include "plinth/storage/io/output_file.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/storage/io/errno_status.h"

namespace plinth::storage {
namespace {
constexpr size_t kBufferBytes = 256 * 1024;
}  // namespace

absl::StatusOr<OutputFile> OutputFile::Create(const std::string& path, Syscalls& syscalls) {
  const int fd = syscalls.Open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, path, "create");
  return OutputFile(path, fd, syscalls);
}

OutputFile::OutputFile(std::string path, int fd, Syscalls& syscalls)
    : path_(std::move(path)), fd_(fd), syscalls_(&syscalls) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      syscalls_(other.syscalls_),
      buffer_(std::move(other.buffer_)),
      checksum_(std::move(other.checksum_)),
      size_(other.size_),
      written_(other.written_),
      status_(std::move(other.status_)) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0) syscalls_->Close(fd_);
}

absl::Status OutputFile::Append(std::string_view bytes) {
  return Append(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

absl::Status OutputFile::Append(std::span<const std::byte> bytes) {
  RETURN_IF_ERROR(status_);
  checksum_.Update(bytes);
  size_ += bytes.size();
  if (buffer_.size() + bytes.size() <= kBufferBytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Flush());
  return WriteThrough(bytes);
}

absl::Status OutputFile::Flush() {
  RETURN_IF_ERROR(WriteThrough(buffer_));
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status OutputFile::WriteThrough(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = syscalls_->Write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      const std::string progress =
          absl::StrCat("wrote ", written_, " of ", size_, " bytes to ", path_);
      status_ = error == ENOSPC || error == EDQUOT
                    ? absl::ResourceExhaustedError("disk full: " + progress)
                    : ErrnoStatus(error, path_, "write (" + progress + ")");
      return status_;
    }
    written_ += n;
    bytes = bytes.subspan(n);
  }
  return absl::OkStatus();
}

absl::Status OutputFile::Finish() {
  RETURN_IF_ERROR(status_);
  CHECK_GE(fd_, 0) << path_ << ": Finish called twice";
  RETURN_IF_ERROR(Flush());
  if (syscalls_->Fsync(fd_) != 0) return status_ = ErrnoStatus(errno, path_, "fsync");
  // The descriptor is gone even when close fails.
  if (syscalls_->Close(std::exchange(fd_, -1)) != 0) {
    return status_ = ErrnoStatus(errno, path_, "close");
  }
  return absl::OkStatus();
}

}  // namespace plinth::storage
