#include "plinth/comm/recorder/dump_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "plinth/comm/recorder/layout.h"
#include "plinth/hardware/base/hash.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr size_t kMostNameCharacters = 60;

absl::Status SystemError(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

std::string FileNamePart(std::string_view text) {
  std::string part(text.substr(0, kMostNameCharacters));
  for (char& c : part) {
    if (!absl::ascii_isalnum(c) && c != '-' && c != '_') c = '_';
  }
  if (part != text) absl::StrAppendFormat(&part, "-%08x", static_cast<uint32_t>(Fnv1a(text)));
  return part;
}

}  // namespace

std::string DumpFileName(std::string_view run, std::string_view group, uint64_t group_id,
                         int rank) {
  return absl::StrCat(run.empty() ? "" : FileNamePart(run) + ".", FileNamePart(group),
                      group_id == 0 ? "" : absl::StrFormat("-%016x", group_id), ".rank", rank,
                      kDumpSuffix);
}

absl::Status MakeDumpDirectory(const std::string& directory) {
  if (mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return SystemError(absl::StrCat("cannot make the dump directory ", directory));
  }
  struct stat stats {};
  if (stat(directory.c_str(), &stats) != 0 || !S_ISDIR(stats.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the dump directory ", directory, " is not a directory"));
  }
  if (stats.st_uid != geteuid() || (stats.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the dump directory ", directory, " belongs to, or can be written by, another user"));
  }
  return absl::OkStatus();
}

absl::StatusOr<FreshFile> CreateFreshFile(const std::string& path, int64_t bytes) {
  FreshFile file;
  file.temporary_path = absl::StrCat(path, ".XXXXXX");
  file.fd = Fd(mkostemp(file.temporary_path.data(), O_CLOEXEC));  // mode 0600
  if (!file.fd.valid()) return SystemError(absl::StrCat("cannot create ", file.temporary_path));
  // Takes the room now: a full disk would be a SIGBUS when a mapped page is written.
  if (const int error = posix_fallocate(file.fd.get(), 0, bytes); error != 0) {
    errno = error;
    const absl::Status status =
        SystemError(absl::StrCat("cannot reserve ", bytes, " bytes for ", path));
    unlink(file.temporary_path.c_str());
    return status;
  }
  return file;
}

absl::Status Publish(const FreshFile& file, const std::string& path) {
  if (rename(file.temporary_path.c_str(), path.c_str()) == 0) return absl::OkStatus();
  const absl::Status status = SystemError(absl::StrCat("cannot create ", path));
  unlink(file.temporary_path.c_str());
  return status;
}

}  // namespace plinth::comm
