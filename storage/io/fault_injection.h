// For tests: Syscalls that fail on demand and remember what was asked.
#ifndef PLINTH_STORAGE_IO_FAULT_INJECTION_H_
#define PLINTH_STORAGE_IO_FAULT_INJECTION_H_

#include <cerrno>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "plinth/storage/io/syscalls.h"

namespace plinth::storage {

// Makes the real calls until one of two things happens:
//   call number `fail_at` (from 0) returns -1 with `error`, and so do all later ones: what a
//     dead disk does, and, to a later reader, what a killed writer leaves behind;
//   `capacity` bytes have been written in all: writes are cut short there, then ENOSPC.
// Every call that succeeded is one line of `log`: "open /a", "fsync /a", "rename /a /b" ...
class FaultySyscalls : public Syscalls {
 public:
  int64_t fail_at = std::numeric_limits<int64_t>::max();
  int error = EIO;
  int64_t capacity = std::numeric_limits<int64_t>::max();
  int64_t calls = 0;
  std::vector<std::string> log;

  int Open(const char* path, int flags, mode_t mode) override {
    if (Fails()) return -1;
    const int fd = Syscalls::Open(path, flags, mode);
    if (fd >= 0) paths_[fd] = path;
    return Log(fd, std::string("open ") + path);
  }
  ssize_t Write(int fd, const void* data, size_t bytes) override {
    if (Fails()) return -1;
    if (capacity == 0) {
      errno = ENOSPC;
      return -1;
    }
    if (static_cast<int64_t>(bytes) > capacity) bytes = capacity;
    capacity -= bytes;
    return Log(Syscalls::Write(fd, data, bytes), "write " + paths_[fd]);
  }
  int Fsync(int fd) override {
    return Fails() ? -1 : Log(Syscalls::Fsync(fd), "fsync " + paths_[fd]);
  }
  int Close(int fd) override {
    Syscalls::Close(fd);  // even a failing close releases the descriptor
    return Fails() ? -1 : Log(0, "close " + paths_[fd]);
  }
  int Mkdir(const char* path, mode_t mode) override {
    return Fails() ? -1 : Log(Syscalls::Mkdir(path, mode), std::string("mkdir ") + path);
  }
  int Rename(const char* from, const char* to) override {
    return Fails() ? -1 : Log(Syscalls::Rename(from, to), Two("rename ", from, to));
  }
  int Exchange(const char* a, const char* b) override {
    return Fails() ? -1 : Log(Syscalls::Exchange(a, b), Two("exchange ", a, b));
  }
  int Remove(const char* path) override {
    return Fails() ? -1 : Log(Syscalls::Remove(path), std::string("remove ") + path);
  }

 private:
  bool Fails() {
    if (calls++ < fail_at) return false;
    errno = error;
    return true;
  }
  template <typename T>
  T Log(T result, std::string line) {
    const int saved = errno;
    if (result >= 0) log.push_back(std::move(line));
    errno = saved;
    return result;
  }
  static std::string Two(const char* verb, const char* a, const char* b) {
    return std::string(verb) + a + " " + b;
  }

  std::map<int, std::string> paths_;
};

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_IO_FAULT_INJECTION_H_
