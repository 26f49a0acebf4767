#include "plinth/infer/serve/metrics/training_log.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace plinth::infer {

absl::StatusOr<TrainingLines> ReadTrainingLines(const std::string& run_dir, int64_t offset,
                                                int64_t max_bytes) {
  if (run_dir.empty()) return absl::NotFoundError("serve.metrics_run is not set");
  if (offset < 0) return absl::InvalidArgumentError(absl::StrCat("offset: is negative: ", offset));
  const std::string path = run_dir + "/metrics.jsonl";
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return absl::NotFoundError(path + ": no metrics yet");
  const int64_t size = file.tellg();
  TrainingLines result;
  result.next_offset = offset <= size ? offset : 0;
  result.lines.resize(static_cast<size_t>(std::min(max_bytes, size - result.next_offset)));
  file.seekg(result.next_offset);
  file.read(result.lines.data(), static_cast<std::streamsize>(result.lines.size()));
  result.lines.resize(static_cast<size_t>(file.gcount()));
  const size_t whole = result.lines.rfind('\n') + 1;  // npos + 1 is 0
  if (whole == 0 && static_cast<int64_t>(result.lines.size()) == max_bytes) {
    result.next_offset += max_bytes;
    result.lines.clear();
    return result;
  }
  result.lines.resize(whole);
  result.next_offset += static_cast<int64_t>(whole);
  return result;
}

}  // namespace plinth::infer
