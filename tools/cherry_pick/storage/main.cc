// Saves a checkpoint, finds it again and reads a part of it, with //storage alone.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "plinth/storage/storage.h"

namespace {

using plinth::storage::Box;

absl::Status SaveAndLoad(const std::string& run) {
  const std::vector<int64_t> shape = {4, 2};
  const std::vector<float> values = {0, 1, 2, 3, 4, 5, 6, 7};
  auto writer = plinth::storage::CheckpointWriter::Create({.run_dir = run, .step = 1});
  if (!writer.ok()) return writer.status();
  (*writer)->Add("model", {"w", plinth::DType::kF32, shape, Box::Whole(shape),
                           std::as_bytes(std::span(values))});
  if (absl::Status status = (*writer)->Commit({.step = 1}); !status.ok()) return status;

  auto found = plinth::storage::FindLatest(run);
  if (!found.ok()) return found.status();
  auto reader = plinth::storage::CheckpointReader::Open(found->dir);
  if (!reader.ok()) return reader.status();
  std::vector<float> row(2);
  const Box third_row{{2, 0}, {1, 2}};
  absl::Status status = (*reader)->Read("w", third_row, std::as_writable_bytes(std::span(row)));
  if (status.ok() && row != std::vector<float>{4, 5}) status = absl::DataLossError("other values");
  return status;
}

}  // namespace

int main() {
  char directory[] = "/tmp/uses_storage.XXXXXX";
  if (mkdtemp(directory) == nullptr) return 1;
  absl::Status status = SaveAndLoad(directory);
  status.Update(plinth::storage::RemoveTree(directory));
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  std::printf("storage: a checkpoint was saved, found and read\n");
  return 0;
}
