// One safetensors file, mapped and checked.
#ifndef PLINTH_STORAGE_FORMATS_SAFETENSORS_READER_H_
#define PLINTH_STORAGE_FORMATS_SAFETENSORS_READER_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "plinth/storage/formats/safetensors/header.h"
#include "plinth/storage/io/read_file.h"

namespace plinth::storage {

// After Open every tensor's bytes lie inside the mapping and no two share any.
// Owns     the mapping: spans are valid while this object lives, across moves.
// Threads  re-entrant after Open.
// Bytes    are little-endian; they are aligned to the element size in files of our writer,
//          but other writers promise nothing: copy, or check before a cast.
class SafetensorsFile {
 public:
  // Errors: those of MappedFile::Open and ParseSafetensorsHeader.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const SafetensorsHeader& header() const { return header_; }
  const std::string& path() const { return file_.path(); }
  std::span<const std::byte> file_bytes() const { return file_.bytes(); }

  // Bytes of a tensor of this file's header.
  std::span<const std::byte> bytes(const SafetensorsInfo& tensor) const {
    return file_.bytes().subspan(tensor.begin, tensor.end - tensor.begin);
  }
  // nullptr when there is none.
  const SafetensorsInfo* Find(std::string_view name) const { return header_.Find(name); }

 private:
  SafetensorsFile(MappedFile file, SafetensorsHeader header)
      : file_(std::move(file)), header_(std::move(header)) {}

  MappedFile file_;
  SafetensorsHeader header_;
};

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_FORMATS_SAFETENSORS_READER_H_
