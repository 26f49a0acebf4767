// Saves a checkpoint: by one process, or by many that each write what they hold.
#ifndef PLINTH_STORAGE_CHECKPOINT_WRITER_H_
#define PLINTH_STORAGE_CHECKPOINT_WRITER_H_

#include <cstddef>
#include <cstdint>
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
#include "plinth/storage/io/syscalls.h"

namespace plinth::storage {

// A tensor, or the part of it that this rank holds.
struct TensorSlice {
  std::string name;  // of the logical tensor, equal on all ranks
  DType dtype;
  std::vector<int64_t> shape;        // of the whole tensor
  Box box;                           // this part; Box::Whole(shape) for all of it. May be empty
  std::span<const std::byte> bytes;  // dense, row-major, host memory
};

// One process:
//   auto writer = CheckpointWriter::Create({.run_dir = run, .step = 40});
//   writer->Add("model", {"w", DType::kF32, {2, 3}, Box::Whole({2, 3}), bytes});
//   writer->Commit(state);
// Several ranks, `barrier` being the caller's:
//   rank 0: Create; barrier; other ranks: Create; all: Add..., WritePart; barrier;
//   rank 0: Commit.
// A rank may stop at any point: until Commit's rename nothing looks like a checkpoint, and
// the next rank-0 Create deletes the remains. Of a replicated tensor one rank adds it.
// Owns     nothing of the tensors: `bytes` are borrowed until WritePart or Commit returns.
// Threads  thread-compatible.
// Errors   those of OutputFile and CommitDirectory: the run's earlier checkpoints stay as
//          they are. Destruction without Commit leaves only a temporary directory.
class CheckpointWriter {
 public:
  struct Options {
    std::string run_dir;
    int64_t step = 0;
    int rank = 0;
    int world_size = 1;
    Syscalls* syscalls = &RealSyscalls();
  };

  // Rank 0 deletes what interrupted saves left and makes the directory; other ranks
  // require that (kFailedPrecondition).
  static absl::StatusOr<std::unique_ptr<CheckpointWriter>> Create(const Options& options);

  // `group` ("model", "optim") chooses the file: <group>-<rank>.safetensors. CHECKs that the
  // box lies in the tensor and that the span has its size.
  void Add(std::string_view group, TensorSlice slice);

  // Rank 0: a file that serving the checkpoint needs, such as "tokenizer.json".
  void AddTokenizerFile(std::string name, std::string bytes);

  // Writes and fsyncs this rank's tensors. Call once, also with no tensors.
  absl::Status WritePart();

  // Rank 0: gathers the parts, checks that they tile every tensor, writes the manifest last,
  // and renames. A checkpoint of the same step is replaced. With one rank, WritePart is
  // included. Errors besides those above: kFailedPrecondition naming a rank that wrote no
  // part; kInvalidArgument for parts that contradict each other.
  absl::Status Commit(const TrainerState& state);

  // Where the checkpoint will be: <run>/checkpoints/step-00000040.
  const std::string& final_dir() const { return final_dir_; }

 private:
  explicit CheckpointWriter(const Options& options);
  absl::Status WriteShard(const std::string& group, const std::vector<TensorSlice>& slices,
                          CheckpointPart* part);
  absl::StatusOr<FileRecord> WriteFile(const std::string& name, std::string_view bytes);
  absl::StatusOr<CheckpointManifest> GatherParts();

  Options options_;
  std::string temporary_dir_;
  std::string final_dir_;
  std::map<std::string, std::vector<TensorSlice>> groups_;
  std::map<std::string, std::string> tokenizer_files_;
  bool part_written_ = false;
};

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_CHECKPOINT_WRITER_H_
