// Writes safetensors files: the same tensors give the same bytes, whatever order they are
// listed in.
#ifndef PLINTH_STORAGE_FORMATS_SAFETENSORS_WRITER_H_
#define PLINTH_STORAGE_FORMATS_SAFETENSORS_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/hardware/tensor/dtype.h"
#include "plinth/storage/formats/safetensors/header.h"
#include "plinth/storage/io/output_file.h"
#include "plinth/storage/io/syscalls.h"

namespace plinth::storage {

struct SafetensorsSpec {
  std::string name;  // UTF-8, not "__metadata__"
  DType dtype;
  std::vector<int64_t> shape;
};

// Streams data behind a header that is known first.
//   auto writer = SafetensorsWriter::Create(path, specs, {});
//   for (const SafetensorsInfo& t : writer->layout()) writer->Append(t.name, bytes_of(t));
//   writer->Finish();
// The layout is that of the format's own library: by dtype, widest first, then by name, so
// the data start (a multiple of 8) and every tensor are aligned to the element size.
// Writes at `path` itself; use a temporary path and a rename, or WriteSafetensors.
// Threads  thread-compatible.
class SafetensorsWriter {
 public:
  // Errors: those of OutputFile; kInvalidArgument for two equal names, text that is not
  // UTF-8, the name "__metadata__", a rank, size or header beyond the format's limits.
  static absl::StatusOr<SafetensorsWriter> Create(
      const std::string& path, std::vector<SafetensorsSpec> tensors,
      const std::map<std::string, std::string>& metadata, Syscalls& syscalls = RealSyscalls());

  // All tensors in the order in which their data must come.
  const std::vector<SafetensorsInfo>& layout() const { return header_.tensors; }

  // Next bytes of `name`, whole or in pieces. CHECKs that it is this tensor's turn and that
  // no byte is too many.
  absl::Status Append(std::string_view name, std::span<const std::byte> bytes);

  // Makes the file durable. CHECKs that all data came. Call once.
  absl::Status Finish();

  // Of the whole file, header included; final after Finish.
  uint64_t checksum() const { return file_.checksum(); }
  int64_t size() const { return file_.size(); }

 private:
  SafetensorsWriter(OutputFile file, SafetensorsHeader header)
      : file_(std::move(file)), header_(std::move(header)) {}

  // Steps over the tensors whose data is complete.
  void SkipComplete();

  OutputFile file_;
  SafetensorsHeader header_;
  size_t next_ = 0;  // tensor whose bytes come now
};

struct SafetensorsTensor {
  SafetensorsSpec spec;
  std::span<const std::byte> bytes;  // borrowed during the call
};

// Replaces the file `path` by one with these tensors, atomically.
// Errors: those of SafetensorsWriter and ReplaceFile. CHECKs each span's size.
absl::Status WriteSafetensors(const std::string& path, std::span<const SafetensorsTensor> tensors,
                              const std::map<std::string, std::string>& metadata = {},
                              Syscalls& syscalls = RealSyscalls());

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_FORMATS_SAFETENSORS_WRITER_H_
