// Loads a checkpoint, whatever layout wrote it, into whatever layout asks.
#ifndef PLINTH_STORAGE_CHECKPOINT_READER_H_
#define PLINTH_STORAGE_CHECKPOINT_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/hardware/tensor/dtype.h"
#include "plinth/storage/checkpoint/box.h"
#include "plinth/storage/checkpoint/manifest.pb.h"
#include "plinth/storage/checkpoint/trainer_state.h"
#include "plinth/storage/formats/safetensors/reader.h"

namespace plinth::storage {

struct CheckpointTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;  // of the whole tensor
};

// Owns     mappings of all shards.      Threads  re-entrant after Open.
class CheckpointReader {
 public:
  struct Options {
    // Compare the checksum of every slice that a Read touches, each time.
    bool verify_reads = false;
  };

  // `dir` is one checkpoint (<run>/checkpoints/step-...). Checks the manifest (with its own
  // checksum), that every file is there with its size, and that each shard's header agrees
  // with the manifest; tensor data is not read.
  // Errors   kNotFound: no manifest, or a file it lists is absent; kDataLoss: damaged or
  //          cut; kUnimplemented: another format version; kInvalidArgument: contradictions.
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(const std::string& dir,
                                                                Options options);
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(const std::string& dir) {
    return Open(dir, Options());
  }

  const std::string& dir() const { return dir_; }
  const TrainerState& state() const { return state_; }
  const CheckpointManifest& manifest() const { return manifest_; }
  // Sorted by name.
  const std::vector<CheckpointTensor>& tensors() const { return tensors_; }
  // nullptr when there is none.
  const CheckpointTensor* Find(std::string_view name) const;

  // Fills `out`, dense and row-major, with a box of a tensor.
  // Errors   kNotFound: no such tensor; kInvalidArgument: a box outside of it or an `out` of
  //          another size; kDataLoss: a slice's checksum is wrong (with verify_reads), then
  //          `out` holds rubbish.
  absl::Status Read(std::string_view name, const Box& box, std::span<std::byte> out) const;
  // The whole tensor.
  absl::Status Read(std::string_view name, std::span<std::byte> out) const;

  // A tokenizer file, checked against its checksum. kNotFound when the manifest has none of
  // this name.
  absl::StatusOr<std::string> ReadTokenizerFile(const std::string& name) const;

  // Reads everything and compares all checksums. Each line names a damaged file and what in
  // it is wrong ("model-00000.safetensors: tensor \"w\" slice [0+2]: checksum is ...").
  // `on_file`, if given, is called before each file is read, for progress.
  std::vector<std::string> FindDamage(
      const std::function<void(const FileRecord&)>& on_file = nullptr) const;
  // kDataLoss with those lines, or OK.
  absl::Status Verify() const;

 private:
  CheckpointReader() = default;
  absl::Status OpenFiles();
  absl::Status CheckSlices();
  std::span<const std::byte> SliceBytes(const SliceRecord& slice) const;

  Options options_;
  std::string dir_;
  CheckpointManifest manifest_;
  TrainerState state_;
  std::vector<SafetensorsFile> shards_;  // as in the manifest
  std::vector<CheckpointTensor> tensors_;
  std::map<std::string, size_t, std::less<>> index_;  // name -> position in tensors_
};

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_CHECKPOINT_READER_H_
