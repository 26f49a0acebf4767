// A model's weights: one safetensors file, or several shards with or without an index.
#ifndef PLINTH_STORAGE_FORMATS_SAFETENSORS_MODEL_H_
#define PLINTH_STORAGE_FORMATS_SAFETENSORS_MODEL_H_

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/storage/formats/safetensors/header.h"
#include "plinth/storage/formats/safetensors/reader.h"

namespace plinth::storage {

// Everything is checked when it opens, from headers alone: no weight is read or allocated
// before all shards are known to be there and to agree.
// Owns     the mappings of all shards.      Threads  re-entrant after Open.
class SafetensorsModel {
 public:
  struct Tensor {
    const SafetensorsInfo* info;
    std::span<const std::byte> bytes;
    const std::string* file;  // path of the shard
  };

  // `path` is a .safetensors file, a *.index.json, or a directory. In a directory,
  // model.safetensors.index.json counts if it is there, else all *.safetensors files do.
  // With an index, a tensor that several shards hold is taken from the shard that the
  // index names; without one that is an error, because any choice would be a guess.
  // Errors   kNotFound: nothing there, or a shard file is absent that the index, or the
  //          "-of-00003" in another shard's name, says must be there;
  //          kDataLoss: the index says that a shard holds a tensor, and its header does not;
  //          kInvalidArgument: a malformed index (two entries of one name, a file name that
  //          leaves the directory, ...), a duplicate without an index; those of the reader.
  static absl::StatusOr<SafetensorsModel> Open(const std::string& path);

  // kFailedPrecondition unless every name is there: the message lists the missing ones and
  // says when a shard holds one that the index does not list.
  absl::Status Require(std::span<const std::string> names) const;

  // Sorted.
  std::vector<std::string> names() const;
  // kNotFound when there is none.
  absl::StatusOr<Tensor> Find(std::string_view name) const;

 private:
  SafetensorsModel() = default;
  absl::Status OpenShard(const std::string& path);
  absl::Status LoadIndexed(const std::string& index_path);
  absl::Status LoadFiles(const std::vector<std::string>& paths);

  std::string source_;  // what Open was pointed at, for messages
  std::vector<SafetensorsFile> shards_;
  std::map<std::string, size_t, std::less<>> shard_of_;  // tensor -> position in shards_
};

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_FORMATS_SAFETENSORS_MODEL_H_
