#include "plinth/storage/formats/safetensors/reader.h"

#include "plinth/hardware/base/status_macros.h"

namespace plinth::storage {

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  ASSIGN_OR_RETURN(SafetensorsHeader header, ParseSafetensorsHeader(file.bytes(), path));
  return SafetensorsFile(std::move(file), std::move(header));
}

}  // namespace plinth::storage
