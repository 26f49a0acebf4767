// What a person or a script can learn about a checkpoint: the commands of //storage:ckpt.
#ifndef PLINTH_STORAGE_CHECKPOINT_REPORT_H_
#define PLINTH_STORAGE_CHECKPOINT_REPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "plinth/storage/checkpoint/report.pb.h"

namespace plinth::storage {

// `path` is a checkpoint, or a run's directory, which stands for its newest complete one.
// Errors: those of CheckpointReader::Open and FindLatest.
absl::StatusOr<InspectReport> Inspect(const std::string& path);

// Reads all bytes. A checkpoint that opens but is damaged gives a report with ok = false.
// With `show_progress` a line per file goes to stderr.
absl::StatusOr<VerifyReport> VerifyCheckpoint(const std::string& path, bool show_progress);

// Tables for people.
std::string ToText(const InspectReport& report);
std::string ToText(const VerifyReport& report);

// One JSON object and a newline.
std::string ToJson(const google::protobuf::Message& report);

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_CHECKPOINT_REPORT_H_
