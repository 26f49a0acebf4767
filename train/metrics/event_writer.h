// EventWriter: scalars in the event files that TensorBoard reads.
#ifndef PLINTH_TRAIN_METRICS_EVENT_WRITER_H_
#define PLINTH_TRAIN_METRICS_EVENT_WRITER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/train/metrics/append_file.h"

namespace plinth::train {

struct Scalar {
  std::string name;  // "train/loss"
  double value = 0;
};

// One record on disk: little-endian length (8 bytes), its masked CRC-32C (4), the message, its
// masked CRC-32C (4). Exposed for tests.
std::string FrameRecord(std::string_view message);

// Thread-compatible. Errors: AppendFile's.
class EventWriter {
 public:
  // Creates "events.out.tfevents.<seconds>.<pid>.plinth" in `directory`, which exists. Each
  // start of a run gets a file of its own; TensorBoard joins the files of a directory by step.
  static absl::StatusOr<EventWriter> Create(const std::string& directory);

  absl::Status Write(int64_t step, std::span<const Scalar> scalars);
  const std::string& path() const { return file_.path(); }

 private:
  explicit EventWriter(AppendFile file) : file_(std::move(file)) {}

  AppendFile file_;
};

}  // namespace plinth::train

#endif  // PLINTH_TRAIN_METRICS_EVENT_WRITER_H_
