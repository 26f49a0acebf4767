// rewrite IN OUT: reads a safetensors file and writes the same tensors and metadata again.
#include <cstdio>
#include <vector>

#include "absl/status/status.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/storage/formats/safetensors/reader.h"
#include "plinth/storage/formats/safetensors/writer.h"

namespace {

absl::Status Rewrite(const char* in, const char* out) {
  using plinth::storage::SafetensorsFile;
  ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(in));
  std::vector<plinth::storage::SafetensorsTensor> tensors;
  for (const auto& t : file.header().tensors) {
    tensors.push_back({{t.name, t.dtype, t.shape}, file.bytes(t)});
  }
  return plinth::storage::WriteSafetensors(out, tensors, file.header().metadata);
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status =
      argc == 3 ? Rewrite(argv[1], argv[2]) : absl::InvalidArgumentError("usage: rewrite IN OUT");
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
