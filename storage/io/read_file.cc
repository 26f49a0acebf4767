#include "plinth/storage/io/read_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/storage/io/errno_status.h"

namespace plinth::storage {
namespace {

// A descriptor open for reading and the size that fstat gave.
struct OpenFile {
  OpenFile(int fd, int64_t size) : fd(fd), size(size) {}
  OpenFile(OpenFile&& other) noexcept : fd(std::exchange(other.fd, -1)), size(other.size) {}
  ~OpenFile() {
    if (fd >= 0) ::close(fd);
  }
  int fd;
  int64_t size;
};

absl::StatusOr<OpenFile> OpenRegular(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer before we can refuse it.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoStatus(errno, path, "open for reading");
  OpenFile file(fd, 0);
  struct stat info {};
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, path, "stat");
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(path + (S_ISDIR(info.st_mode)
                                                  ? ": is a directory, expected a file"
                                                  : ": is not a regular file"));
  }
  file.size = info.st_size;
  return file;
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes) {
  ASSIGN_OR_RETURN(const OpenFile file, OpenRegular(path));
  if (file.size > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": holds ", file.size, " bytes, at most ", max_bytes, " are accepted"));
  }
  std::string bytes(file.size, '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::read(file.fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, path, absl::StrCat("read at byte ", done));
    if (n == 0) {
      return absl::DataLossError(
          absl::StrCat(path, ": expected ", bytes.size(), " bytes, got ", done));
    }
    done += n;
  }
  return bytes;
}

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  ASSIGN_OR_RETURN(const OpenFile file, OpenRegular(path));
  if (file.size == 0) return MappedFile(path, {});  // mmap refuses length 0
  void* start = ::mmap(nullptr, file.size, PROT_READ, MAP_SHARED, file.fd, 0);
  if (start == MAP_FAILED) {
    return ErrnoStatus(errno, path, absl::StrCat("map ", file.size, " bytes"));
  }
  return MappedFile(path, {static_cast<const std::byte*>(start), static_cast<size_t>(file.size)});
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace plinth::storage
