// Reading: a whole small file into memory, or any file as a read-only mapping.
#ifndef PLINTH_STORAGE_IO_READ_FILE_H_
#define PLINTH_STORAGE_IO_READ_FILE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace plinth::storage {

// The bytes of a regular file.
// Errors   those of ErrnoStatus; kInvalidArgument for a directory or device;
//          kResourceExhausted when it holds more than `max_bytes` (nothing is allocated);
//          kDataLoss when it shrinks while it is read (expected and got bytes).
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     int64_t max_bytes = std::numeric_limits<int64_t>::max());

// A regular file mapped read-only. Pages are read when touched.
// Owns     the mapping; bytes() is valid while this object lives, across moves.
// Threads  re-entrant after Open.
// Limits   if another process truncates the file, touching the lost pages raises SIGBUS:
//          files that //storage writes are replaced by rename and never truncated.
class MappedFile {
 public:
  // Errors as for ReadFile. An empty file maps to an empty span.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes)
      : path_(std::move(path)), bytes_(bytes) {}

  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_IO_READ_FILE_H_
