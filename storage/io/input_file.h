// InputFile: random access to the bytes of an input file.
#ifndef PLINTH_STORAGE_IO_INPUT_FILE_H_
#define PLINTH_STORAGE_IO_INPUT_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace plinth::storage {

// Read, not mapped: a file that shrinks meanwhile is an error here, not a SIGBUS.
// Owns the descriptor. Movable; used by one thread.
class InputFile {
 public:
  // kInvalidArgument unless it is a regular file; else the system's code, naming the path.
  static absl::StatusOr<InputFile> Open(const std::string& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  // When it was opened.
  int64_t size() const { return size_; }
  // Adds bytes [offset, offset + bytes) to `text`. kDataLoss when the file has become shorter.
  absl::Status Append(int64_t offset, int64_t bytes, std::string* text) const;

 private:
  InputFile(std::string path, int fd, int64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {}

  std::string path_;
  int fd_;
  int64_t size_;
};

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_IO_INPUT_FILE_H_
