// A file that is written once, front to back.
#ifndef PLINTH_STORAGE_IO_OUTPUT_FILE_H_
#define PLINTH_STORAGE_IO_OUTPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/storage/io/checksum.h"
#include "plinth/storage/io/syscalls.h"

namespace plinth::storage {

// Buffers small appends, writes large ones through, and keeps the checksum of all of them.
// State    after the first error every later call returns that same error.
// Owns     the descriptor. Destruction without Finish closes it and leaves a partial file:
//          the caller writes at a path that nothing reads until it is renamed.
// Threads  thread-compatible.
// Errors   those of ErrnoStatus; a full disk reads
//          "disk full: wrote 4096 of 8192 bytes to /path" (kResourceExhausted).
class OutputFile {
 public:
  // Creates or truncates `path`. `syscalls` must outlive the file.
  static absl::StatusOr<OutputFile> Create(const std::string& path,
                                           Syscalls& syscalls = RealSyscalls());
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  absl::Status Append(std::span<const std::byte> bytes);
  absl::Status Append(std::string_view bytes);

  // Flushes, fsyncs and closes: when it returns OK the bytes are on the device. Call once.
  absl::Status Finish();

  // Of the bytes appended so far.
  uint64_t checksum() const { return checksum_.Value(); }
  int64_t size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  OutputFile(std::string path, int fd, Syscalls& syscalls);
  absl::Status WriteThrough(std::span<const std::byte> bytes);
  absl::Status Flush();

  std::string path_;
  int fd_;
  Syscalls* syscalls_;
  std::vector<std::byte> buffer_;
  StreamingChecksum checksum_;
  int64_t size_ = 0;     // bytes appended
  int64_t written_ = 0;  // bytes that the kernel took
  absl::Status status_;
};

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_IO_OUTPUT_FILE_H_
