#include "plinth/train/metrics/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace plinth::train {
namespace {

absl::Status FileError(std::string_view what, const std::string& path, int error) {
  const std::string text =
      absl::StrCat(std::string(what), " ", path, ": ", std::string(std::strerror(error)));
  return error == ENOSPC || error == EDQUOT ? absl::ResourceExhaustedError(text)
                                            : absl::UnavailableError(text);
}

}  // namespace

absl::StatusOr<AppendFile> AppendFile::Open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return FileError("cannot open", path, errno);
  return AppendFile(path, fd);
}

AppendFile::AppendFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

AppendFile::~AppendFile() {
  if (fd_ >= 0) ::close(fd_);
}

absl::Status AppendFile::Append(std::string_view record) {
  while (!record.empty()) {
    const ssize_t written = ::write(fd_, record.data(), record.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError("cannot append to", path_, errno);
    record.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace plinth::train
