// The system calls that change a file system, behind one seam.
//
// Everything in //storage that writes goes through a Syscalls. The base class makes the
// real calls; a test derives from it to fail call number n, to write less than asked, or to
// record the order of calls. Semantics, return values and errno are those of the calls
// themselves, so the error paths under test are the ones that run in production.
// Thread-safe (the base class has no state).
#ifndef PLINTH_STORAGE_IO_SYSCALLS_H_
#define PLINTH_STORAGE_IO_SYSCALLS_H_

#include <sys/types.h>

#include <cstddef>

namespace plinth::storage {

class Syscalls {
 public:
  virtual ~Syscalls() = default;
  virtual int Open(const char* path, int flags, mode_t mode);
  virtual ssize_t Write(int fd, const void* data, size_t bytes);
  virtual int Fsync(int fd);
  virtual int Close(int fd);
  virtual int Mkdir(const char* path, mode_t mode);
  virtual int Rename(const char* from, const char* to);
  // Swaps two existing paths in one step: renameat2(RENAME_EXCHANGE).
  virtual int Exchange(const char* a, const char* b);
  // Unlinks a file, or removes an empty directory.
  virtual int Remove(const char* path);
};

// The real calls. Lives for the whole program.
Syscalls& RealSyscalls();

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_IO_SYSCALLS_H_
