#include "plinth/storage/checkpoint/manifest.h"

#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/storage/formats/safetensors/dtypes.h"
#include "plinth/storage/formats/safetensors/header.h"
#include "plinth/storage/io/checksum.h"

namespace plinth::storage {
namespace {

// Field 15 of wire type fixed64, then the value.
constexpr char kTrailerTag = 15 << 3 | 1;
constexpr size_t kTrailerBytes = 9;

absl::Status CheckFileName(const std::string& name, std::set<std::string>* seen) {
  if (name.empty() || name == "." || name == ".." ||
      name.find_first_of(std::string_view("/\0", 2)) != std::string::npos) {
    return absl::InvalidArgumentError("\"" + name + "\" is not a plain file name");
  }
  if (!seen->insert(name).second) {
    return absl::InvalidArgumentError("file \"" + name + "\" is listed twice");
  }
  return absl::OkStatus();
}

absl::Status ValidateTensor(const TensorRecord& tensor, int shards) {
  ASSIGN_OR_RETURN(const DType dtype, ParseSafetensorsDType(tensor.dtype()));
  const std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
  const std::optional<uint64_t> bytes = TensorBytes(dtype, shape);
  if (!bytes.has_value() || *bytes > std::numeric_limits<int64_t>::max()) {
    return absl::InvalidArgumentError("its size is negative or beyond 63 bits");
  }
  std::vector<Box> boxes;
  for (const SliceRecord& slice : tensor.slices()) {
    if (slice.shard() >= static_cast<uint32_t>(shards)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a slice is in shard ", slice.shard(), " of ", shards));
    }
    boxes.push_back(BoxOf(slice));
  }
  return CheckTiling(boxes, shape);
}

}  // namespace

Box BoxOf(const SliceRecord& slice) {
  return {{slice.offset().begin(), slice.offset().end()},
          {slice.shape().begin(), slice.shape().end()}};
}

std::string EncodeManifest(CheckpointManifest manifest) {
  manifest.set_format_version(kCheckpointFormatVersion);
  manifest.clear_manifest_xxh3();
  std::string bytes;
  CHECK(manifest.SerializeToString(&bytes)) << "manifest beyond 2 GiB";
  const uint64_t checksum = Checksum(bytes);
  bytes += kTrailerTag;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(checksum >> (8 * i));
  return bytes;
}

absl::StatusOr<CheckpointManifest> DecodeManifest(std::string_view bytes, const std::string& path) {
  if (bytes.size() < kTrailerBytes || bytes[bytes.size() - kTrailerBytes] != kTrailerTag) {
    return absl::DataLossError(
        absl::StrCat(path, ": ", bytes.size(), " bytes that do not end in a manifest's checksum"));
  }
  const std::string_view body = bytes.substr(0, bytes.size() - kTrailerBytes);
  CheckpointManifest manifest;
  const bool parsed = manifest.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  if (const uint64_t got = Checksum(body); !parsed || got != manifest.manifest_xxh3()) {
    return absl::DataLossError(absl::StrCat(path, ": damaged: checksum of ", body.size(),
                                            " bytes is ", ChecksumText(got), ", expected ",
                                            ChecksumText(manifest.manifest_xxh3())));
  }
  if (manifest.format_version() != kCheckpointFormatVersion) {
    return absl::UnimplementedError(absl::StrCat(path, ": checkpoint format ",
                                                 manifest.format_version(), ", expected ",
                                                 kCheckpointFormatVersion));
  }
  RETURN_IF_ERROR(ValidateManifest(manifest)) << path;
  return manifest;
}

absl::Status ValidateManifest(const CheckpointManifest& manifest) {
  std::set<std::string> files;
  for (const FileRecord& file : manifest.shards())
    RETURN_IF_ERROR(CheckFileName(file.name(), &files));
  for (const FileRecord& file : manifest.tokenizer_files()) {
    RETURN_IF_ERROR(CheckFileName(file.name(), &files));
  }
  std::set<std::string> names;
  for (const TensorRecord& tensor : manifest.tensors()) {
    if (!names.insert(tensor.name()).second) {
      return absl::InvalidArgumentError("tensor \"" + tensor.name() + "\" is listed twice");
    }
    RETURN_IF_ERROR(ValidateTensor(tensor, manifest.shards_size()))
        << "tensor \"" << tensor.name() << "\"";
  }
  return absl::OkStatus();
}

void StoreState(const TrainerState& state, CheckpointManifest* manifest) {
  manifest->set_step(state.step);
  manifest->set_config_text(state.config_text);
  manifest->set_rng_seed(state.rng_seed);
  CursorRecord* cursor = manifest->mutable_cursor();
  cursor->set_epoch(state.cursor.epoch);
  cursor->set_sample(state.cursor.sample);
  cursor->set_sequence_length(state.cursor.sequence_length);
  cursor->set_dataset_checksum(state.cursor.dataset_checksum);
  for (const auto& [name, value] : state.counters) {
    CounterRecord* counter = manifest->add_counters();
    counter->set_name(name);
    counter->set_value(value);
  }
  for (const auto& [name, value] : state.scalars) {
    ScalarRecord* scalar = manifest->add_scalars();
    scalar->set_name(name);
    scalar->set_value(value);
  }
}

TrainerState LoadState(const CheckpointManifest& manifest) {
  TrainerState state;
  state.step = manifest.step();
  state.config_text = manifest.config_text();
  state.rng_seed = manifest.rng_seed();
  const CursorRecord& cursor = manifest.cursor();
  state.cursor = {cursor.epoch(), cursor.sample(), cursor.sequence_length(),
                  cursor.dataset_checksum()};
  for (const CounterRecord& c : manifest.counters()) state.counters[c.name()] = c.value();
  for (const ScalarRecord& s : manifest.scalars()) state.scalars[s.name()] = s.value();
  return state;
}

}  // namespace plinth::storage
