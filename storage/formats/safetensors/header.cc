#include "plinth/storage/formats/safetensors/header.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/storage/formats/safetensors/dtypes.h"
#include "plinth/storage/formats/safetensors/json_events.h"

namespace plinth::storage {
namespace {

constexpr uint64_t kPrefixBytes = 8;
constexpr std::string_view kMetadataKey = "__metadata__";

// Builds the header from JSON events. `offsets` in tensors are relative to the data until
// the parse is over.
class HeaderBuilder final : public JsonEvents {
 public:
  explicit HeaderBuilder(SafetensorsHeader* header) : header_(header) {}

  absl::Status BeginObject() override {
    switch (state_) {
      case State::kStart:
        state_ = State::kRoot;
        return absl::OkStatus();
      case State::kTensorStart:
        state_ = State::kTensor;
        return absl::OkStatus();
      case State::kMetadataStart:
        state_ = State::kMetadata;
        return absl::OkStatus();
      default:
        return Unexpected("an object");
    }
  }

  absl::Status EndObject() override {
    if (state_ == State::kTensor) RETURN_IF_ERROR(FinishTensor());
    state_ = state_ == State::kRoot ? State::kEnd : State::kRoot;
    return absl::OkStatus();
  }

  absl::Status BeginArray() override {
    if (state_ == State::kShapeStart) {
      state_ = State::kShape;
    } else if (state_ == State::kOffsetsStart) {
      state_ = State::kOffsets;
    } else {
      return Unexpected("an array");
    }
    return absl::OkStatus();
  }

  absl::Status EndArray() override {
    if (state_ == State::kOffsets && offset_count_ != 2) {
      return Bad(absl::StrCat("data_offsets has ", offset_count_, " numbers, expected 2"));
    }
    state_ = State::kTensor;
    return absl::OkStatus();
  }

  absl::Status Key(std::string_view key) override {
    if (state_ == State::kRoot) return RootKey(key);
    if (state_ == State::kTensor) return FieldKey(key);
    metadata_key_ = key;  // the only other object is the metadata
    state_ = State::kMetadataValue;
    return absl::OkStatus();
  }

  absl::Status String(std::string_view value) override {
    if (state_ == State::kDType) {
      ASSIGN_OR_RETURN(tensor_.dtype, ParseSafetensorsDType(value),
                       _ << "tensor " << Quoted(tensor_.name));
      state_ = State::kTensor;
      return absl::OkStatus();
    }
    if (state_ == State::kMetadataValue) {
      state_ = State::kMetadata;
      if (header_->metadata.emplace(metadata_key_, value).second) return absl::OkStatus();
      return absl::InvalidArgumentError("__metadata__ has two entries " + Quoted(metadata_key_));
    }
    return Unexpected("a string");
  }

  absl::Status Unsigned(uint64_t value) override {
    if (state_ == State::kShape) {
      if (value > std::numeric_limits<int64_t>::max()) {
        return Bad(absl::StrCat("shape holds ", value, ", beyond 63 bits"));
      }
      if (tensor_.shape.size() == kMaxSafetensorsRank) {
        return Bad(absl::StrCat("shape has more than ", kMaxSafetensorsRank, " dimensions"));
      }
      tensor_.shape.push_back(static_cast<int64_t>(value));
      return absl::OkStatus();
    }
    if (state_ == State::kOffsets) {
      if (offset_count_ == 2) return Bad("data_offsets has more than 2 numbers");
      (offset_count_++ == 0 ? tensor_.begin : tensor_.end) = value;
      return absl::OkStatus();
    }
    return Unexpected("a number");
  }

  absl::Status Other(std::string_view what) override { return Unexpected(what); }

 private:
  enum class State {
    kStart,
    kRoot,
    kTensorStart,
    kTensor,
    kDType,
    kShapeStart,
    kShape,
    kOffsetsStart,
    kOffsets,
    kMetadataStart,
    kMetadata,
    kMetadataValue,
    kEnd,
  };
  enum Field : unsigned { kHasDType = 1, kHasShape = 2, kHasOffsets = 4, kHasAll = 7 };

  absl::Status Bad(std::string_view what) const {
    return absl::InvalidArgumentError("tensor " + Quoted(tensor_.name) + ": " + std::string(what));
  }

  absl::Status Unexpected(std::string_view got) const {
    const auto wrong = [&](std::string_view where, std::string_view expected) {
      std::string text(where);
      text.append(": expected ").append(expected).append(", got ").append(got);
      return absl::InvalidArgumentError(text);
    };
    const std::string tensor = "tensor " + Quoted(tensor_.name);
    switch (state_) {
      case State::kTensorStart:
        return wrong(tensor, "an object");
      case State::kDType:
        return wrong(tensor + " dtype", "a string");
      case State::kShapeStart:
        return wrong(tensor + " shape", "an array");
      case State::kShape:
        return wrong(tensor + " shape", "integers >= 0");
      case State::kOffsetsStart:
        return wrong(tensor + " data_offsets", "an array");
      case State::kOffsets:
        return wrong(tensor + " data_offsets", "integers >= 0");
      case State::kMetadataStart:
        return wrong("__metadata__", "an object");
      case State::kMetadataValue:
        return wrong("__metadata__ entry " + Quoted(metadata_key_), "a string");
      default:
        return wrong("header", "an object");
    }
  }

  absl::Status RootKey(std::string_view key) {
    if (key == kMetadataKey) {
      if (std::exchange(has_metadata_, true)) {
        return absl::InvalidArgumentError("two __metadata__ entries");
      }
      state_ = State::kMetadataStart;
      return absl::OkStatus();
    }
    tensor_ = SafetensorsInfo();
    tensor_.name = key;
    fields_ = 0;
    offset_count_ = 0;
    state_ = State::kTensorStart;
    if (header_->index.contains(tensor_.name)) return Bad("described twice");
    return absl::OkStatus();
  }

  absl::Status FieldKey(std::string_view key) {
    unsigned field = 0;
    if (key == "dtype") {
      field = kHasDType;
      state_ = State::kDType;
    } else if (key == "shape") {
      field = kHasShape;
      state_ = State::kShapeStart;
    } else if (key == "data_offsets") {
      field = kHasOffsets;
      state_ = State::kOffsetsStart;
    } else {
      return Bad("unexpected field " + Quoted(key));
    }
    if ((fields_ & field) != 0) return Bad("two fields " + Quoted(key));
    fields_ |= field;
    return absl::OkStatus();
  }

  absl::Status FinishTensor() {
    if (fields_ != kHasAll) {
      return Bad(absl::StrCat("lacks", fields_ & kHasDType ? "" : " dtype",
                              fields_ & kHasShape ? "" : " shape",
                              fields_ & kHasOffsets ? "" : " data_offsets"));
    }
    const std::string offsets =
        absl::StrCat("data_offsets [", tensor_.begin, ", ", tensor_.end, "]");
    if (tensor_.begin > tensor_.end) return Bad(offsets + " end before they begin");
    const uint64_t span = tensor_.end - tensor_.begin;
    const std::string type = absl::StrCat(std::string(SafetensorsName(tensor_.dtype)), " [",
                                          absl::StrJoin(tensor_.shape, ", "), "]");
    const std::optional<uint64_t> need = TensorBytes(tensor_.dtype, tensor_.shape);
    if (!need.has_value()) return Bad(type + " needs more bytes than 64 bits count");
    if (*need != span) {
      return Bad(absl::StrCat(type, ": expected ", *need, " bytes, got ", span, " from ", offsets));
    }
    header_->index.emplace(tensor_.name, header_->tensors.size());
    header_->tensors.push_back(std::move(tensor_));
    return absl::OkStatus();
  }

  SafetensorsHeader* header_;
  State state_ = State::kStart;
  SafetensorsInfo tensor_{};
  unsigned fields_ = 0;
  int offset_count_ = 0;
  bool has_metadata_ = false;
  std::string metadata_key_;
};

// Requires tensors sorted by offset.
absl::Status CheckCoverage(const std::vector<SafetensorsInfo>& tensors, uint64_t data_bytes) {
  uint64_t covered = 0;
  const SafetensorsInfo* previous = nullptr;
  for (const SafetensorsInfo& tensor : tensors) {
    const std::string range = absl::StrCat(" at data bytes [", tensor.begin, ", ", tensor.end, ")");
    if (tensor.end > data_bytes) {
      return absl::DataLossError(absl::StrCat("tensor ", Quoted(tensor.name), range,
                                              ": the file holds only ", data_bytes,
                                              " bytes of data"));
    }
    if (tensor.begin < covered) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", Quoted(tensor.name), range,
                                                     " overlaps tensor ", Quoted(previous->name),
                                                     ", which ends at ", covered));
    }
    if (tensor.begin > covered) {
      return absl::InvalidArgumentError(absl::StrCat("data bytes [", covered, ", ", tensor.begin,
                                                     ") before tensor ", Quoted(tensor.name),
                                                     " belong to no tensor"));
    }
    covered = tensor.end;
    previous = &tensor;
  }
  if (covered < data_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("data bytes [", covered, ", ", data_bytes,
                                                   ") after the last tensor belong to no tensor"));
  }
  return absl::OkStatus();
}

}  // namespace

const SafetensorsInfo* SafetensorsHeader::Find(std::string_view name) const {
  const auto found = index.find(absl::string_view(name.data(), name.size()));
  return found == index.end() ? nullptr : &tensors[found->second];
}

std::optional<uint64_t> TensorBytes(DType dtype, std::span<const int64_t> shape) {
  uint64_t bytes = DTypeSize(dtype);
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) {
      return std::nullopt;
    }
  }
  return bytes;
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsJson(std::string_view json, uint64_t data_bytes,
                                                       std::string_view path) {
  SafetensorsHeader header;
  HeaderBuilder builder(&header);
  RETURN_IF_ERROR(ReadJson(json, builder)) << path << ": header";
  std::stable_sort(header.tensors.begin(), header.tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  RETURN_IF_ERROR(CheckCoverage(header.tensors, data_bytes)) << path;
  const uint64_t data_start = kPrefixBytes + json.size();
  for (size_t i = 0; i < header.tensors.size(); ++i) {
    SafetensorsInfo& tensor = header.tensors[i];
    tensor.begin += data_start;  // no overflow: both ends are within the file
    tensor.end += data_start;
    header.index[tensor.name] = i;
  }
  return header;
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::span<const std::byte> file,
                                                         std::string_view path) {
  const std::string where(path);
  if (file.size() < kPrefixBytes) {
    return absl::DataLossError(absl::StrCat(where, ": expected at least ", kPrefixBytes,
                                            " bytes for the header's length, got ", file.size()));
  }
  uint64_t length = 0;
  for (int i = 0; i < 8; ++i) length |= std::to_integer<uint64_t>(file[i]) << (8 * i);
  const uint64_t rest = file.size() - kPrefixBytes;
  if (length > kMaxSafetensorsHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": header of ", length,
                                                   " bytes at byte 8, at most ",
                                                   kMaxSafetensorsHeaderBytes, " are accepted"));
  }
  if (length > rest) {
    return absl::DataLossError(absl::StrCat(where, ": header of ", length,
                                            " bytes at byte 8, but the file has only ", rest,
                                            " after it begins"));
  }
  const std::string_view json(reinterpret_cast<const char*>(file.data()) + kPrefixBytes, length);
  return ParseSafetensorsJson(json, rest - length, path);
}

}  // namespace plinth::storage
