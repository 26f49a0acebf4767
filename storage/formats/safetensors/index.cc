#include "plinth/storage/formats/safetensors/index.h"

#include "plinth/hardware/base/status_macros.h"
#include "plinth/storage/formats/safetensors/json_events.h"

namespace plinth::storage {
namespace {

class IndexBuilder final : public JsonEvents {
 public:
  const std::map<std::string, std::string>& weight_map() const { return weight_map_; }
  bool complete() const { return has_weight_map_; }

  absl::Status BeginObject() override {
    if (InMetadata()) return Deeper();
    if (depth_ == 0 || (depth_ == 1 && section_ != Section::kNone)) {
      ++depth_;
      return absl::OkStatus();
    }
    return Unexpected("an object");
  }
  absl::Status EndObject() override {
    --depth_;
    if (depth_ == 1) section_ = Section::kNone;
    return absl::OkStatus();
  }
  absl::Status BeginArray() override { return InMetadata() ? Deeper() : Unexpected("an array"); }
  absl::Status EndArray() override { return EndObject(); }

  absl::Status Key(std::string_view key) override {
    if (depth_ != 1) {
      key_ = key;
      return absl::OkStatus();
    }
    bool* seen = nullptr;
    if (key == "metadata") {
      section_ = Section::kMetadata;
      seen = &has_metadata_;
    } else if (key == "weight_map") {
      section_ = Section::kWeightMap;
      seen = &has_weight_map_;
    } else {
      return absl::InvalidArgumentError("unexpected key " + Quoted(key));
    }
    if (*seen) return absl::InvalidArgumentError("two keys " + Quoted(key));
    *seen = true;
    return absl::OkStatus();
  }

  absl::Status String(std::string_view value) override {
    if (InMetadata()) return Scalar();
    if (section_ != Section::kWeightMap || depth_ != 2) return Unexpected("a string");
    if (value.empty() || value.find('/') != std::string_view::npos || value == "." ||
        value == ".." || value.find('\0') != std::string_view::npos) {
      return absl::InvalidArgumentError("tensor " + Quoted(key_) + ": " + Quoted(value) +
                                        " is not the name of a file beside the index");
    }
    if (!weight_map_.emplace(key_, value).second) {
      return absl::InvalidArgumentError("tensor " + Quoted(key_) + " is listed twice");
    }
    return absl::OkStatus();
  }
  absl::Status Unsigned(uint64_t) override {
    return InMetadata() ? Scalar() : Unexpected("a number");
  }
  absl::Status Other(std::string_view what) override {
    return InMetadata() ? Scalar() : Unexpected(what);
  }

 private:
  enum class Section { kNone, kMetadata, kWeightMap };

  bool InMetadata() const { return section_ == Section::kMetadata; }
  absl::Status Deeper() {
    ++depth_;
    return absl::OkStatus();
  }
  absl::Status Scalar() {
    if (depth_ == 1) section_ = Section::kNone;  // "metadata": null, for example
    return absl::OkStatus();
  }
  absl::Status Unexpected(std::string_view got) const {
    const std::string got_text(got);
    if (depth_ == 2) {
      return absl::InvalidArgumentError("tensor " + Quoted(key_) + ": expected a file name, got " +
                                        got_text);
    }
    return absl::InvalidArgumentError(std::string(depth_ == 0 ? "index" : "weight_map") +
                                      ": expected an object, got " + got_text);
  }

  Section section_ = Section::kNone;
  int depth_ = 0;
  bool has_metadata_ = false;
  bool has_weight_map_ = false;
  std::string key_;
  std::map<std::string, std::string> weight_map_;
};

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> ParseSafetensorsIndex(std::string_view json,
                                                                         std::string_view path) {
  IndexBuilder builder;
  RETURN_IF_ERROR(ReadJson(json, builder)) << path;
  if (!builder.complete()) {
    return absl::InvalidArgumentError(std::string(path) + ": has no \"weight_map\"");
  }
  return builder.weight_map();
}

}  // namespace plinth::storage
