#include "plinth/storage/io/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/storage/io/errno_status.h"
#include "plinth/storage/io/output_file.h"

namespace plinth::storage {
namespace {

// "a/b" -> "a", "/a" -> "/", "a" -> ".".
std::string Parent(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool IsDirectory(const std::string& path, int flags) {
  struct stat info {};
  return ::fstatat(AT_FDCWD, path.c_str(), &info, flags) == 0 && S_ISDIR(info.st_mode);
}

bool Exists(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) {
  struct CloseDir {
    void operator()(DIR* dir) const { ::closedir(dir); }
  };
  const std::unique_ptr<DIR, CloseDir> dir(::opendir(path.c_str()));
  if (dir == nullptr) return ErrnoStatus(errno, path, "open directory");
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  if (errno != 0) return ErrnoStatus(errno, path, "read directory");
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status MakeDirectories(const std::string& path, Syscalls& syscalls) {
  if (path.empty() || IsDirectory(path, 0)) return absl::OkStatus();
  const std::string parent = Parent(path);
  if (parent != path) RETURN_IF_ERROR(MakeDirectories(parent, syscalls));
  if (syscalls.Mkdir(path.c_str(), 0755) != 0) {
    const int error = errno;
    // Another process may have made it in the meantime.
    if (error == EEXIST && IsDirectory(path, 0)) return absl::OkStatus();
    return ErrnoStatus(error, path, "create directory");
  }
  return SyncDirectory(parent, syscalls);
}

absl::Status SyncDirectory(const std::string& path, Syscalls& syscalls) {
  const int fd = syscalls.Open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (fd < 0) return ErrnoStatus(errno, path, "open directory to fsync");
  const int error = syscalls.Fsync(fd) == 0 ? 0 : errno;
  syscalls.Close(fd);
  return error == 0 ? absl::OkStatus() : ErrnoStatus(error, path, "fsync directory");
}

absl::Status RemoveTree(const std::string& path, Syscalls& syscalls) {
  if (IsDirectory(path, AT_SYMLINK_NOFOLLOW)) {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
    for (const std::string& name : names) RETURN_IF_ERROR(RemoveTree(path + "/" + name, syscalls));
  }
  if (syscalls.Remove(path.c_str()) != 0 && errno != ENOENT) {
    return ErrnoStatus(errno, path, "remove");
  }
  return absl::OkStatus();
}

absl::Status CommitDirectory(const std::string& from, const std::string& to, Syscalls& syscalls) {
  CHECK_EQ(Parent(from), Parent(to));
  RETURN_IF_ERROR(SyncDirectory(from, syscalls));
  const bool replace = Exists(to);
  const int result = replace ? syscalls.Exchange(from.c_str(), to.c_str())
                             : syscalls.Rename(from.c_str(), to.c_str());
  if (result != 0) {
    return ErrnoStatus(errno, from, (replace ? "exchange with " : "rename to ") + to);
  }
  RETURN_IF_ERROR(SyncDirectory(Parent(to), syscalls));
  return replace ? RemoveTree(from, syscalls) : absl::OkStatus();
}

absl::Status ReplaceFile(const std::string& path,
                         const std::function<absl::Status(const std::string& temporary)>& write,
                         Syscalls& syscalls) {
  // A rename would put a file in the place of a device or a link, /dev/full for one.
  struct stat found;
  if (::lstat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode)) {
    return absl::InvalidArgumentError(path + ": is not a regular file, and is left as it is");
  }
  const std::string name = path.substr(path.find_last_of('/') + 1);
  const std::string temporary = Parent(path) + "/.tmp-" + name;
  absl::Status status = write(temporary);
  if (status.ok() && syscalls.Rename(temporary.c_str(), path.c_str()) != 0) {
    status = ErrnoStatus(errno, temporary, "rename to " + path);
  }
  if (!status.ok()) {
    RemoveTree(temporary, syscalls).IgnoreError();    // the first error is the one to report
    return StatusBuilder(std::move(status)) << path;  // the name that the caller knows
  }
  return SyncDirectory(Parent(path), syscalls);
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes,
                                 Syscalls& syscalls) {
  const auto write = [&](const std::string& temporary) -> absl::Status {
    ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(temporary, syscalls));
    RETURN_IF_ERROR(file.Append(bytes));
    return file.Finish();
  };
  return ReplaceFile(path, write, syscalls);
}

}  // namespace plinth::storage
