#include "plinth/storage/checkpoint/layout.h"

#include <charconv>

#include "absl/strings/str_format.h"
#include "plinth/hardware/base/check.h"

namespace plinth::storage {
namespace {
constexpr std::string_view kStepPrefix = "step-";
}  // namespace

std::string CheckpointsDir(const std::string& run_dir) { return run_dir + "/" + kCheckpointsName; }

std::string StepName(int64_t step) {
  CHECK_GE(step, 0);
  return absl::StrFormat("step-%08d", step);
}

std::optional<int64_t> ParseStepName(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kStepPrefix.size());
  int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || step < 0 || StepName(step) != name) return std::nullopt;
  return step;
}

std::string ShardName(std::string_view group, int rank) {
  return absl::StrFormat("%s-%05d.safetensors", std::string(group), rank);
}

std::string PartName(int rank) { return absl::StrFormat("part-%05d.pb", rank); }

}  // namespace plinth::storage
