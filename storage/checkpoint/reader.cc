#include "plinth/storage/checkpoint/reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/storage/checkpoint/layout.h"
#include "plinth/storage/checkpoint/manifest.h"
#include "plinth/storage/formats/safetensors/dtypes.h"
#include "plinth/storage/io/checksum.h"
#include "plinth/storage/io/read_file.h"

namespace plinth::storage {
namespace {

constexpr int64_t kMaxManifestBytes = int64_t{1} << 30;

std::string Mismatch(uint64_t got, uint64_t expected) {
  return "checksum is " + ChecksumText(got) + ", expected " + ChecksumText(expected);
}

absl::Status CheckFile(const std::string& path, uint64_t got, uint64_t expected) {
  if (got == expected) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, ": expected ", expected, " bytes, got ", got));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointReader>> CheckpointReader::Open(const std::string& dir,
                                                                         Options options) {
  std::unique_ptr<CheckpointReader> reader(new CheckpointReader);
  reader->options_ = options;
  reader->dir_ = dir;
  const std::string path = dir + "/" + kManifestName;
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kMaxManifestBytes));
  ASSIGN_OR_RETURN(reader->manifest_, DecodeManifest(bytes, path));
  reader->state_ = LoadState(reader->manifest_);
  RETURN_IF_ERROR(reader->OpenFiles());
  RETURN_IF_ERROR(reader->CheckSlices());
  return reader;
}

absl::Status CheckpointReader::OpenFiles() {
  for (const FileRecord& file : manifest_.shards()) {
    const std::string path = dir_ + "/" + file.name();
    // The size first: a shard that was cut should say so, and not that its header is odd.
    ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(path));
    RETURN_IF_ERROR(CheckFile(path, mapped.bytes().size(), file.bytes()));
    ASSIGN_OR_RETURN(SafetensorsFile shard, SafetensorsFile::Open(path));
    shards_.push_back(std::move(shard));
  }
  for (const FileRecord& file : manifest_.tokenizer_files()) {
    const std::string path = dir_ + "/" + file.name();
    ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(path));
    RETURN_IF_ERROR(CheckFile(path, mapped.bytes().size(), file.bytes()));
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::CheckSlices() {
  for (const TensorRecord& record : manifest_.tensors()) {
    CheckpointTensor tensor;
    tensor.name = record.name();
    tensor.shape.assign(record.shape().begin(), record.shape().end());
    ASSIGN_OR_RETURN(tensor.dtype, ParseSafetensorsDType(record.dtype()));
    for (const SliceRecord& slice : record.slices()) {
      const SafetensorsFile& shard = shards_[slice.shard()];
      const SafetensorsInfo* info = shard.Find(slice.key());
      const auto bad = [&](const std::string& what) {
        return absl::DataLossError(shard.path() + ": " + what + " \"" + slice.key() +
                                   "\", which the manifest lists for tensor \"" + record.name() +
                                   "\"");
      };
      if (info == nullptr) return bad("has no tensor");
      const Box box = BoxOf(slice);
      if (info->dtype != tensor.dtype || info->shape != box.shape) {
        return bad(absl::StrCat("has ", std::string(SafetensorsName(info->dtype)), " [",
                                absl::StrJoin(info->shape, ", "), "], expected ", record.dtype(),
                                " [", absl::StrJoin(box.shape, ", "), "] for"));
      }
    }
    index_.emplace(tensor.name, tensors_.size());
    tensors_.push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

const CheckpointTensor* CheckpointReader::Find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

std::span<const std::byte> CheckpointReader::SliceBytes(const SliceRecord& slice) const {
  const SafetensorsFile& shard = shards_[slice.shard()];
  return shard.bytes(*shard.Find(slice.key()));
}

absl::Status CheckpointReader::Read(std::string_view name, std::span<std::byte> out) const {
  const CheckpointTensor* tensor = Find(name);
  return Read(name, tensor == nullptr ? Box() : Box::Whole(tensor->shape), out);
}

absl::Status CheckpointReader::Read(std::string_view name, const Box& box,
                                    std::span<std::byte> out) const {
  const auto found = index_.find(name);
  const std::string where = dir_ + ": tensor \"" + std::string(name) + "\"";
  if (found == index_.end()) return absl::NotFoundError(where + " is not in the checkpoint");
  const CheckpointTensor& tensor = tensors_[found->second];
  RETURN_IF_ERROR(CheckWithin(box, tensor.shape)) << where;
  const int64_t element_bytes = DTypeSize(tensor.dtype);
  const int64_t expected = Elements(box.shape) * element_bytes;
  if (static_cast<int64_t>(out.size()) != expected) {
    return absl::InvalidArgumentError(absl::StrCat(where, " ", box.ToString(), " has ", expected,
                                                   " bytes, the destination ", out.size()));
  }
  int64_t copied = 0;
  for (const SliceRecord& slice : manifest_.tensors(static_cast<int>(found->second)).slices()) {
    const std::span<const std::byte> bytes = SliceBytes(slice);
    const int64_t here = CopyShared(BoxOf(slice), bytes, box, out, element_bytes);
    copied += here;
    if (here == 0 || !options_.verify_reads) continue;
    if (const uint64_t got = Checksum(bytes); got != slice.xxh3()) {
      return absl::DataLossError(where + ": " + shards_[slice.shard()].path() + ": " +
                                 Mismatch(got, slice.xxh3()));
    }
  }
  CHECK_EQ(copied * element_bytes, expected) << where;  // the manifest's slices tile
  return absl::OkStatus();
}

absl::StatusOr<std::string> CheckpointReader::ReadTokenizerFile(const std::string& name) const {
  for (const FileRecord& file : manifest_.tokenizer_files()) {
    if (file.name() != name) continue;
    const std::string path = dir_ + "/" + name;
    ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
    if (const uint64_t got = Checksum(bytes); got != file.xxh3()) {
      return absl::DataLossError(path + ": " + Mismatch(got, file.xxh3()));
    }
    return bytes;
  }
  return absl::NotFoundError(dir_ + ": holds no tokenizer file \"" + name + "\"");
}

std::vector<std::string> CheckpointReader::FindDamage(
    const std::function<void(const FileRecord&)>& on_file) const {
  std::vector<std::string> damage;
  for (int i = 0; i < manifest_.shards_size(); ++i) {
    const FileRecord& file = manifest_.shards(i);
    if (on_file) on_file(file);
    const uint64_t got = Checksum(shards_[i].file_bytes());
    if (got == file.xxh3()) continue;
    const size_t before = damage.size();
    for (const TensorRecord& tensor : manifest_.tensors()) {
      for (const SliceRecord& slice : tensor.slices()) {
        if (slice.shard() != static_cast<uint32_t>(i)) continue;
        const uint64_t slice_got = Checksum(SliceBytes(slice));
        if (slice_got == slice.xxh3()) continue;
        damage.push_back(file.name() + ": tensor \"" + tensor.name() + "\" slice " +
                         BoxOf(slice).ToString() + ": " + Mismatch(slice_got, slice.xxh3()));
      }
    }
    if (damage.size() == before) {
      damage.push_back(file.name() + ": header: file " + Mismatch(got, file.xxh3()));
    }
  }
  for (const FileRecord& file : manifest_.tokenizer_files()) {
    if (on_file) on_file(file);
    const absl::StatusOr<std::string> bytes = ReadTokenizerFile(file.name());
    if (!bytes.ok()) damage.push_back(std::string(bytes.status().message()));
  }
  return damage;
}

absl::Status CheckpointReader::Verify() const {
  const std::vector<std::string> damage = FindDamage();
  if (damage.empty()) return absl::OkStatus();
  return absl::DataLossError(dir_ + ": " + absl::StrJoin(damage, "; "));
}

}  // namespace plinth::storage
