#include "plinth/comm/transport/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr char kDirectory[] = "/dev/shm";

int64_t MebibytesUp(int64_t bytes) { return (bytes + (int64_t{1} << 20) - 1) >> 20; }

absl::StatusOr<Segment> Map(Fd fd, int64_t bytes) {
  // Populated: a page fault for every page would otherwise be part of the first call.
  void* memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd.get(), 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map ", MebibytesUp(bytes), " MiB: ", std::strerror(errno)));
  }
  return Segment{std::move(fd),
                 std::shared_ptr<std::byte>(static_cast<std::byte*>(memory),
                                            [bytes](std::byte* p) { munmap(p, bytes); })};
}

absl::Status CheckRoom(int64_t bytes, const char* advice) {
  struct statvfs stats {};
  if (statvfs(kDirectory, &stats) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat(kDirectory, ": ", std::strerror(errno)));
  }
  const int64_t room = static_cast<int64_t>(stats.f_bavail) * static_cast<int64_t>(stats.f_frsize);
  if (room >= bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "need ", MebibytesUp(bytes), " MiB in ", kDirectory, ", have ", room >> 20, ": ", advice));
}

}  // namespace

absl::StatusOr<Segment> CreateSegment(int64_t bytes, const char* advice) {
  CHECK_GT(bytes, 0);
  RETURN_IF_ERROR(CheckRoom(bytes, advice));
  Fd fd(open(kDirectory, O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!fd.valid()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot create a file in ", kDirectory, ": ", std::strerror(errno)));
  }
  // Takes the pages now: running out later would be a SIGBUS in the middle of an operation.
  const int error = posix_fallocate(fd.get(), 0, bytes);
  if (error != 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot reserve ", MebibytesUp(bytes), " MiB in ", kDirectory, ": ", std::strerror(error)));
  }
  return Map(std::move(fd), bytes);
}

SegmentAddress AddressOf(const Segment& segment, int64_t bytes) {
  struct stat stats {};
  CHECK_EQ(fstat(segment.fd.get(), &stats), 0) << std::strerror(errno);
  return {getpid(), segment.fd.get(), stats.st_dev, stats.st_ino, bytes};
}

absl::StatusOr<Segment> OpenSegment(const SegmentAddress& address) {
  const std::string path = absl::StrCat("/proc/", address.process, "/fd/", address.fd);
  constexpr char kAdvice[] =
      "; shm needs one PID namespace and user for all ranks, PLINTH_TRANSPORT=tcp does not";
  Fd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot open ", path, ": ", std::strerror(errno), kAdvice));
  }
  struct stat stats {};
  if (fstat(fd.get(), &stats) != 0 || stats.st_dev != address.device ||
      stats.st_ino != address.inode || stats.st_size != address.bytes) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is not the segment meant", kAdvice));
  }
  return Map(std::move(fd), address.bytes);
}

}  // namespace plinth::comm
