#include "plinth/infer/load/checkpoint_source.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/tensor/dtype.h"
#include "plinth/hardware/tensor/shape.h"
#include "plinth/storage/checkpoint/manifest.pb.h"

namespace plinth::infer {
namespace {

// A group's files are <group>-<rank>.safetensors.
bool IsModelShard(const std::string& name) { return name.starts_with("model-"); }

}  // namespace

std::vector<models::SourceTensor> CheckpointSource::tensors() const {
  std::vector<models::SourceTensor> list;
  const storage::CheckpointManifest& manifest = reader_.manifest();
  for (const storage::TensorRecord& tensor : manifest.tensors()) {
    if (tensor.slices().empty()) continue;
    const int shard = static_cast<int>(tensor.slices(0).shard());
    if (!IsModelShard(manifest.shards(shard).name())) continue;
    const std::vector<int64_t> dims(tensor.shape().begin(), tensor.shape().end());
    list.push_back({.name = tensor.name(), .shape = Shape(std::span(dims))});
  }
  return list;
}

absl::Status CheckpointSource::Read(const std::string& name, std::span<float> elements) {
  const storage::CheckpointTensor* tensor = reader_.Find(name);
  if (tensor == nullptr) return absl::NotFoundError("no such tensor");
  if (tensor->dtype != DType::kF32) {
    return absl::UnimplementedError(
        absl::StrCat("expected f32 elements, got ", std::string(DTypeName(tensor->dtype))));
  }
  return reader_.Read(name, std::as_writable_bytes(elements));
}

}  // namespace plinth::infer
