#include "plinth/storage/io/syscalls.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

namespace plinth::storage {

int Syscalls::Open(const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); }
ssize_t Syscalls::Write(int fd, const void* data, size_t bytes) { return ::write(fd, data, bytes); }
int Syscalls::Fsync(int fd) { return ::fsync(fd); }
int Syscalls::Close(int fd) { return ::close(fd); }
int Syscalls::Mkdir(const char* path, mode_t mode) { return ::mkdir(path, mode); }
int Syscalls::Rename(const char* from, const char* to) { return ::rename(from, to); }
int Syscalls::Exchange(const char* a, const char* b) {
  return ::renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
}
int Syscalls::Remove(const char* path) { return ::remove(path); }

Syscalls& RealSyscalls() {
  static Syscalls& real = *new Syscalls;  // no destructor at exit: threads may still write
  return real;
}

}  // namespace plinth::storage
