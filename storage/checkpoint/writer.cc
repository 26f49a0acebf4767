#include "plinth/storage/checkpoint/writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/storage/checkpoint/layout.h"
#include "plinth/storage/checkpoint/manifest.h"
#include "plinth/storage/formats/safetensors/dtypes.h"
#include "plinth/storage/formats/safetensors/header.h"
#include "plinth/storage/formats/safetensors/writer.h"
#include "plinth/storage/io/checksum.h"
#include "plinth/storage/io/directory.h"
#include "plinth/storage/io/output_file.h"
#include "plinth/storage/io/read_file.h"

namespace plinth::storage {
namespace {

absl::Status RemoveRemains(const std::string& dir, Syscalls& syscalls) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(dir));
  for (const std::string& name : names) {
    if (name.starts_with(kTemporaryPrefix)) {
      RETURN_IF_ERROR(RemoveTree(dir + "/" + name, syscalls));
    }
  }
  return absl::OkStatus();
}

// A whole tensor keeps its name, so that other tools read the file as they would any other.
std::string KeyOf(const TensorSlice& slice) {
  if (slice.box == Box::Whole(slice.shape)) return slice.name;
  return absl::StrCat(slice.name, "@", absl::StrJoin(slice.box.offset, ","));
}

absl::Status MergeTensor(const TensorRecord& from, uint32_t first_shard,
                         std::map<std::string, TensorRecord>* tensors) {
  const auto [entry, is_new] = tensors->emplace(from.name(), TensorRecord());
  TensorRecord& to = entry->second;
  if (is_new) {
    to = from;
    to.clear_slices();
  } else if (to.dtype() != from.dtype() || !std::equal(to.shape().begin(), to.shape().end(),
                                                       from.shape().begin(), from.shape().end())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor \"", from.name(), "\" is ", from.dtype(), " [", absl::StrJoin(from.shape(), ", "),
        "] here and ", to.dtype(), " [", absl::StrJoin(to.shape(), ", "), "] elsewhere"));
  }
  for (const SliceRecord& slice : from.slices()) {
    SliceRecord* added = to.add_slices();
    *added = slice;
    added->set_shard(first_shard + slice.shard());
  }
  return absl::OkStatus();
}

}  // namespace

CheckpointWriter::CheckpointWriter(const Options& options) : options_(options) {
  const std::string dir = CheckpointsDir(options.run_dir) + "/";
  temporary_dir_ = dir + kTemporaryPrefix + StepName(options.step);
  final_dir_ = dir + StepName(options.step);
}

absl::StatusOr<std::unique_ptr<CheckpointWriter>> CheckpointWriter::Create(const Options& options) {
  CHECK_GE(options.rank, 0);
  CHECK_LT(options.rank, options.world_size);
  std::unique_ptr<CheckpointWriter> writer(new CheckpointWriter(options));
  if (options.rank == 0) {
    const std::string dir = CheckpointsDir(options.run_dir);
    RETURN_IF_ERROR(MakeDirectories(dir, *options.syscalls));
    RETURN_IF_ERROR(RemoveRemains(dir, *options.syscalls));
    RETURN_IF_ERROR(MakeDirectories(writer->temporary_dir_, *options.syscalls));
  } else if (!ListDirectory(writer->temporary_dir_).ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("rank ", options.rank, ": ", writer->temporary_dir_,
                     " is absent: rank 0 must begin the save first, on a shared file system"));
  }
  return writer;
}

void CheckpointWriter::Add(std::string_view group, TensorSlice slice) {
  CHECK(!group.empty() && group.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == group.npos)
      << group;
  CHECK_OK(CheckWithin(slice.box, slice.shape)) << slice.name;
  const std::optional<uint64_t> bytes = TensorBytes(slice.dtype, slice.box.shape);
  CHECK(bytes.has_value()) << slice.name;
  CHECK_EQ(slice.bytes.size(), *bytes) << slice.name;
  groups_[std::string(group)].push_back(std::move(slice));
}

void CheckpointWriter::AddTokenizerFile(std::string name, std::string bytes) {
  CHECK_EQ(options_.rank, 0);
  tokenizer_files_[std::move(name)] = std::move(bytes);
}

absl::StatusOr<FileRecord> CheckpointWriter::WriteFile(const std::string& name,
                                                       std::string_view bytes) {
  ASSIGN_OR_RETURN(OutputFile file,
                   OutputFile::Create(temporary_dir_ + "/" + name, *options_.syscalls));
  RETURN_IF_ERROR(file.Append(bytes));
  RETURN_IF_ERROR(file.Finish());
  FileRecord record;
  record.set_name(name);
  record.set_bytes(file.size());
  record.set_xxh3(file.checksum());
  return record;
}

absl::Status CheckpointWriter::WriteShard(const std::string& group,
                                          const std::vector<TensorSlice>& slices,
                                          CheckpointPart* part) {
  std::vector<SafetensorsSpec> specs;
  std::map<std::string, const TensorSlice*> by_key;
  for (const TensorSlice& slice : slices) {
    specs.push_back({KeyOf(slice), slice.dtype, slice.box.shape});
    by_key[specs.back().name] = &slice;
  }
  const std::string name = ShardName(group, options_.rank);
  ASSIGN_OR_RETURN(SafetensorsWriter writer,
                   SafetensorsWriter::Create(temporary_dir_ + "/" + name, std::move(specs),
                                             {{"format", "pt"}},  // other loaders insist on it
                                             *options_.syscalls));
  for (const SafetensorsInfo& info : writer.layout()) {
    const TensorSlice& slice = *by_key[info.name];
    RETURN_IF_ERROR(writer.Append(info.name, slice.bytes));
    TensorRecord* tensor = part->add_tensors();
    tensor->set_name(slice.name);
    tensor->set_dtype(std::string(SafetensorsName(slice.dtype)));
    tensor->mutable_shape()->Assign(slice.shape.begin(), slice.shape.end());
    SliceRecord* record = tensor->add_slices();
    record->mutable_offset()->Assign(slice.box.offset.begin(), slice.box.offset.end());
    record->mutable_shape()->Assign(slice.box.shape.begin(), slice.box.shape.end());
    record->set_shard(part->shards_size());
    record->set_key(info.name);
    record->set_xxh3(Checksum(slice.bytes));
  }
  RETURN_IF_ERROR(writer.Finish());
  FileRecord* file = part->add_shards();
  file->set_name(name);
  file->set_bytes(writer.size());
  file->set_xxh3(writer.checksum());
  return absl::OkStatus();
}

absl::Status CheckpointWriter::WritePart() {
  CHECK(!std::exchange(part_written_, true)) << "WritePart called twice";
  CheckpointPart part;
  part.set_rank(options_.rank);
  for (const auto& [group, slices] : groups_) {
    RETURN_IF_ERROR(WriteShard(group, slices, &part));
  }
  groups_.clear();
  return WriteFile(PartName(options_.rank), part.SerializeAsString()).status();
}

absl::StatusOr<CheckpointManifest> CheckpointWriter::GatherParts() {
  CheckpointManifest manifest;
  std::map<std::string, TensorRecord> tensors;
  for (int rank = 0; rank < options_.world_size; ++rank) {
    const std::string path = temporary_dir_ + "/" + PartName(rank);
    const absl::StatusOr<std::string> bytes = ReadFile(path);
    if (absl::IsNotFound(bytes.status())) {
      return absl::FailedPreconditionError(absl::StrCat("rank ", rank, " of ", options_.world_size,
                                                        " wrote no part: ", path, " is absent"));
    }
    RETURN_IF_ERROR(bytes.status());
    CheckpointPart part;
    if (!part.ParseFromString(*bytes) || part.rank() != rank) {
      return absl::DataLossError(path + ": is not the part of this rank");
    }
    const uint32_t first_shard = manifest.shards_size();
    for (const TensorRecord& tensor : part.tensors()) {
      RETURN_IF_ERROR(MergeTensor(tensor, first_shard, &tensors)) << "rank " << rank;
    }
    manifest.mutable_shards()->MergeFrom(part.shards());
    RETURN_IF_ERROR(RemoveTree(path, *options_.syscalls));
  }
  for (auto& [name, tensor] : tensors) *manifest.add_tensors() = std::move(tensor);
  return manifest;
}

absl::Status CheckpointWriter::Commit(const TrainerState& state) {
  CHECK_EQ(options_.rank, 0);
  CHECK_EQ(state.step, options_.step);
  if (!part_written_) {
    CHECK_EQ(options_.world_size, 1) << "WritePart and a barrier come first";
    RETURN_IF_ERROR(WritePart());
  }
  ASSIGN_OR_RETURN(CheckpointManifest manifest, GatherParts());
  for (const auto& [name, bytes] : tokenizer_files_) {
    ASSIGN_OR_RETURN(*manifest.add_tokenizer_files(), WriteFile(name, bytes));
  }
  StoreState(state, &manifest);
  RETURN_IF_ERROR(ValidateManifest(manifest)) << final_dir_;
  RETURN_IF_ERROR(WriteFile(kManifestName, EncodeManifest(std::move(manifest))).status());
  return CommitDirectory(temporary_dir_, final_dir_, *options_.syscalls);
}

}  // namespace plinth::storage
