// The header of a safetensors file, parsed as strictly as the format allows.
//
//   file = u64 little-endian N | N bytes of JSON, padded with spaces | data
//   JSON = {"<tensor>": {"dtype": "F32", "shape": [2,3], "data_offsets": [begin, end]}, ...,
//           "__metadata__": {"<key>": "<text>", ...}}        offsets count from the data's start
//
// The tensors must cover the data exactly: no overlap, no hole, nothing behind the last.
#ifndef PLINTH_STORAGE_FORMATS_SAFETENSORS_HEADER_H_
#define PLINTH_STORAGE_FORMATS_SAFETENSORS_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::storage {

// Longest header accepted, as in the format's own implementation.
inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;
inline constexpr size_t kMaxSafetensorsRank = 64;

struct SafetensorsInfo {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;  // empty for a scalar
  uint64_t begin;              // bytes from the start of the file, [begin, end)
  uint64_t end;
};

struct SafetensorsHeader {
  std::vector<SafetensorsInfo> tensors;  // in the order of their data
  std::map<std::string, std::string> metadata;
  absl::flat_hash_map<std::string, size_t> index;  // name -> position in `tensors`

  // nullptr when there is none. The pointer is valid while this object is.
  const SafetensorsInfo* Find(std::string_view name) const;
};

// Parses the header of a whole file image. `path` appears in messages only.
// Errors   kDataLoss when the file ends before its header or tensors do; kUnimplemented for
//          a dtype of the format that we lack; else kInvalidArgument. Each names the path and,
//          where they apply, tensor, byte offsets, what was expected and what is there.
// Cost     memory linear in the header's own bytes; no number in the file sizes anything.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::span<const std::byte> file,
                                                         std::string_view path);

// The same for header text that is not yet in a file: `data_bytes` will follow it.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsJson(std::string_view json, uint64_t data_bytes,
                                                       std::string_view path);

// Bytes of a dense tensor; nothing when that overflows 64 bits or a size is negative.
std::optional<uint64_t> TensorBytes(DType dtype, std::span<const int64_t> shape);

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_FORMATS_SAFETENSORS_HEADER_H_
