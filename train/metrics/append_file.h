// AppendFile: a log of records that a reader may follow while it grows.
#ifndef PLINTH_TRAIN_METRICS_APPEND_FILE_H_
#define PLINTH_TRAIN_METRICS_APPEND_FILE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace plinth::train {

// Each Append is one write(2) at the end of the file, so records of one writer stay whole.
// Not fsynced: a power cut may lose the last records. Movable; thread-compatible.
class AppendFile {
 public:
  // Creates the file when it is not there. Errors name the path.
  static absl::StatusOr<AppendFile> Open(const std::string& path);
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&&) = delete;
  ~AppendFile();

  // kResourceExhausted when the disk is full; what was written before stays.
  absl::Status Append(std::string_view record);
  const std::string& path() const { return path_; }

 private:
  AppendFile(std::string path, int fd);

  std::string path_;
  int fd_;
};

}  // namespace plinth::train

#endif  // PLINTH_TRAIN_METRICS_APPEND_FILE_H_
