// Any bytes either parse into a header whose tensors cover the data exactly, or give an error.
#include <cstddef>
#include <cstdint>
#include <span>

#include "plinth/hardware/base/check.h"
#include "plinth/storage/formats/safetensors/header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using plinth::storage::SafetensorsHeader;
  const auto header =
      plinth::storage::ParseSafetensorsHeader(std::as_bytes(std::span(data, size)), "fuzz");
  if (!header.ok()) {
    CHECK(!header.status().message().empty());
    return 0;
  }
  uint64_t end = header->tensors.empty() ? size : header->tensors.front().begin;
  CHECK_GE(end, 8u);
  for (const auto& tensor : header->tensors) {
    CHECK_EQ(tensor.begin, end);
    CHECK_EQ(*plinth::storage::TensorBytes(tensor.dtype, tensor.shape), tensor.end - tensor.begin);
    CHECK(header->Find(tensor.name) == &tensor);
    end = tensor.end;
  }
  CHECK_EQ(end, size);
  return 0;
}
