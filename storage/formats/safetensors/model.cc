#include "plinth/storage/formats/safetensors/model.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/storage/formats/safetensors/index.h"
#include "plinth/storage/formats/safetensors/json_events.h"
#include "plinth/storage/io/directory.h"
#include "plinth/storage/io/read_file.h"

namespace plinth::storage {
namespace {

constexpr char kIndexName[] = "model.safetensors.index.json";
constexpr int64_t kMaxIndexBytes = 100'000'000;

// Shards named "<stem>-00001-of-00003.safetensors" must all be among the sorted names.
absl::Status CheckNumberedShards(const std::string& dir, const std::vector<std::string>& names) {
  constexpr std::string_view kTail = "-00000-of-00000.safetensors";
  for (const std::string& name : names) {
    if (name.size() < kTail.size()) continue;
    const size_t stem = name.size() - kTail.size();
    int shard = 0, count = 0, used = 0;
    if (std::sscanf(name.c_str() + stem, "-%5d-of-%5d.safetensors%n", &shard, &count, &used) != 2 ||
        used != static_cast<int>(kTail.size())) {
      continue;
    }
    for (int i = 1; i <= count; ++i) {
      const std::string wanted =
          name.substr(0, stem) + absl::StrFormat("-%05d-of-%05d.safetensors", i, count);
      if (!std::binary_search(names.begin(), names.end(), wanted)) {
        return absl::NotFoundError(dir + ": shard file " + Quoted(wanted) + " is absent (" +
                                   Quoted(name) + " is there)");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SafetensorsModel> SafetensorsModel::Open(const std::string& path) {
  SafetensorsModel model;
  model.source_ = path;
  if (absl::EndsWith(path, ".json")) {
    RETURN_IF_ERROR(model.LoadIndexed(path));
    return model;
  }
  if (absl::EndsWith(path, ".safetensors")) {
    RETURN_IF_ERROR(model.LoadFiles({path}));
    return model;
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
  std::vector<std::string> files;
  for (const std::string& name : names) {
    if (name == kIndexName) {
      RETURN_IF_ERROR(model.LoadIndexed(path + "/" + name));
      return model;
    }
    if (absl::EndsWith(name, ".safetensors")) files.push_back(path + "/" + name);
  }
  RETURN_IF_ERROR(CheckNumberedShards(path, names));
  if (files.empty()) {
    return absl::NotFoundError(path + ": holds neither " + kIndexName + " nor a .safetensors file");
  }
  RETURN_IF_ERROR(model.LoadFiles(files));
  return model;
}

absl::Status SafetensorsModel::OpenShard(const std::string& path) {
  ASSIGN_OR_RETURN(SafetensorsFile shard, SafetensorsFile::Open(path));
  shards_.push_back(std::move(shard));
  return absl::OkStatus();
}

absl::Status SafetensorsModel::LoadIndexed(const std::string& index_path) {
  source_ = index_path;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(index_path, kMaxIndexBytes));
  ASSIGN_OR_RETURN(const auto weight_map, ParseSafetensorsIndex(text, index_path));
  const size_t slash = index_path.find_last_of('/');
  const std::string directory = slash == std::string::npos ? "" : index_path.substr(0, slash + 1);
  std::map<std::string, size_t> opened;  // file name -> position in shards_
  for (const auto& [tensor, file] : weight_map) {
    const auto [entry, is_new] = opened.emplace(file, shards_.size());
    if (is_new) {
      const absl::Status status = OpenShard(directory + file);
      if (absl::IsNotFound(status)) {
        return absl::NotFoundError(index_path + ": shard file " + Quoted(file) +
                                   " is absent (the index names it for tensor " + Quoted(tensor) +
                                   ")");
      }
      RETURN_IF_ERROR(status);
    }
    if (shards_[entry->second].Find(tensor) == nullptr) {
      return absl::DataLossError(index_path + ": lists tensor " + Quoted(tensor) + " in shard " +
                                 Quoted(file) + ", but that shard's header lacks it");
    }
    shard_of_.emplace(tensor, entry->second);
  }
  return absl::OkStatus();
}

absl::Status SafetensorsModel::LoadFiles(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    RETURN_IF_ERROR(OpenShard(path));
    for (const SafetensorsInfo& tensor : shards_.back().header().tensors) {
      const auto [entry, is_new] = shard_of_.emplace(tensor.name, shards_.size() - 1);
      if (!is_new) {
        return absl::InvalidArgumentError("tensor " + Quoted(tensor.name) + " is in both " +
                                          shards_[entry->second].path() + " and " + path +
                                          ", and there is no " + kIndexName + " to choose by");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status SafetensorsModel::Require(std::span<const std::string> names) const {
  constexpr size_t kListed = 10;
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    if (shard_of_.contains(name)) continue;
    missing.push_back(Quoted(name));
    for (const SafetensorsFile& shard : shards_) {
      if (shard.Find(name) == nullptr) continue;
      missing.back() += " (in shard " + shard.path() + ", but not listed)";
      break;
    }
  }
  if (missing.empty()) return absl::OkStatus();
  const size_t total = missing.size();
  std::string more;
  if (total > kListed) {
    more = " and " + std::to_string(total - kListed) + " more";
    missing.resize(kListed);
  }
  return absl::FailedPreconditionError(source_ + ": lacks " + std::to_string(total) + " of " +
                                       std::to_string(names.size()) +
                                       " required tensors: " + absl::StrJoin(missing, ", ") + more);
}

std::vector<std::string> SafetensorsModel::names() const {
  std::vector<std::string> names;
  for (const auto& [name, shard] : shard_of_) names.push_back(name);
  return names;
}

absl::StatusOr<SafetensorsModel::Tensor> SafetensorsModel::Find(std::string_view name) const {
  const auto found = shard_of_.find(name);
  if (found == shard_of_.end()) {
    return absl::NotFoundError(source_ + ": has no tensor " + Quoted(name));
  }
  const SafetensorsFile& shard = shards_[found->second];
  const SafetensorsInfo* info = shard.Find(name);
  return Tensor{info, shard.bytes(*info), &shard.path()};
}

}  // namespace plinth::storage
