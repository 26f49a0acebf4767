#include "plinth/storage/formats/safetensors/writer.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/storage/formats/safetensors/dtypes.h"
#include "plinth/storage/formats/safetensors/json_events.h"
#include "plinth/storage/io/directory.h"

namespace plinth::storage {
namespace {

std::string JsonString(std::string_view text) {
  return boost::json::serialize(boost::json::string_view(text.data(), text.size()));
}

struct HeaderText {
  std::string json;
  uint64_t data_bytes;
};

// Requires sorted tensors.
absl::StatusOr<HeaderText> Describe(const std::vector<SafetensorsSpec>& tensors,
                                    const std::map<std::string, std::string>& metadata,
                                    const std::string& path) {
  std::vector<std::string> entries;
  if (!metadata.empty()) {
    std::vector<std::string> pairs;
    for (const auto& [key, value] : metadata)
      pairs.push_back(JsonString(key) + ":" + JsonString(value));
    entries.push_back("\"__metadata__\":{" + absl::StrJoin(pairs, ",") + "}");
  }
  uint64_t offset = 0;
  for (const SafetensorsSpec& tensor : tensors) {
    const std::optional<uint64_t> bytes = TensorBytes(tensor.dtype, tensor.shape);
    const uint64_t begin = offset;
    if (!bytes.has_value() || __builtin_add_overflow(offset, *bytes, &offset)) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": tensor ", Quoted(tensor.name), " [",
                                                     absl::StrJoin(tensor.shape, ", "),
                                                     "] needs more bytes than 64 bits count"));
    }
    entries.push_back(absl::StrCat(JsonString(tensor.name), ":{\"dtype\":\"",
                                   std::string(SafetensorsName(tensor.dtype)), "\",\"shape\":[",
                                   absl::StrJoin(tensor.shape, ","), "],\"data_offsets\":[", begin,
                                   ",", offset, "]}"));
  }
  std::string json = "{" + absl::StrJoin(entries, ",") + "}";
  json.resize((json.size() + 7) / 8 * 8, ' ');  // 8-byte aligned data
  return HeaderText{std::move(json), offset};
}

}  // namespace

absl::StatusOr<SafetensorsWriter> SafetensorsWriter::Create(
    const std::string& path, std::vector<SafetensorsSpec> tensors,
    const std::map<std::string, std::string>& metadata, Syscalls& syscalls) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    const int order_a = SafetensorsOrder(a.dtype), order_b = SafetensorsOrder(b.dtype);
    return order_a != order_b ? order_a > order_b : a.name < b.name;
  });
  ASSIGN_OR_RETURN(const HeaderText text, Describe(tensors, metadata, path));
  if (text.json.size() > kMaxSafetensorsHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": header of ", text.json.size(),
                                                   " bytes, at most ", kMaxSafetensorsHeaderBytes,
                                                   " can be read"));
  }
  // The reader is the judge of names and sizes: what it refuses must not be written.
  ASSIGN_OR_RETURN(SafetensorsHeader header,
                   ParseSafetensorsJson(text.json, text.data_bytes, path));
  if (header.tensors.size() != tensors.size()) {
    return absl::InvalidArgumentError(path + ": a tensor is named \"__metadata__\"");
  }
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path, syscalls));
  std::string prefix;
  for (int i = 0; i < 8; ++i) prefix += static_cast<char>(text.json.size() >> (8 * i));
  RETURN_IF_ERROR(file.Append(prefix + text.json));
  SafetensorsWriter writer(std::move(file), std::move(header));
  writer.SkipComplete();
  return writer;
}

void SafetensorsWriter::SkipComplete() {
  while (next_ < layout().size() && static_cast<int64_t>(layout()[next_].end) == size()) ++next_;
}

absl::Status SafetensorsWriter::Append(std::string_view name, std::span<const std::byte> bytes) {
  if (bytes.empty()) return absl::OkStatus();
  CHECK_LT(next_, layout().size()) << "no data left to write, got tensor " << name;
  const SafetensorsInfo& tensor = layout()[next_];
  CHECK_EQ(tensor.name, name) << "tensor out of turn";
  CHECK_LE(size() + bytes.size(), tensor.end) << "too many bytes for tensor " << name;
  RETURN_IF_ERROR(file_.Append(bytes));
  SkipComplete();
  return absl::OkStatus();
}

absl::Status SafetensorsWriter::Finish() {
  CHECK_EQ(next_, layout().size()) << "data is missing from tensor " << layout()[next_].name;
  return file_.Finish();
}

absl::Status WriteSafetensors(const std::string& path, std::span<const SafetensorsTensor> tensors,
                              const std::map<std::string, std::string>& metadata,
                              Syscalls& syscalls) {
  std::vector<SafetensorsSpec> specs;
  std::map<std::string_view, std::span<const std::byte>> bytes;
  for (const SafetensorsTensor& tensor : tensors) {
    specs.push_back(tensor.spec);
    bytes[tensor.spec.name] = tensor.bytes;
  }
  const auto write = [&](const std::string& temporary) -> absl::Status {
    ASSIGN_OR_RETURN(SafetensorsWriter writer,
                     SafetensorsWriter::Create(temporary, std::move(specs), metadata, syscalls));
    for (const SafetensorsInfo& tensor : writer.layout()) {
      RETURN_IF_ERROR(writer.Append(tensor.name, bytes[tensor.name]));
    }
    return writer.Finish();
  };
  return ReplaceFile(path, write, syscalls);
}

}  // namespace plinth::storage
