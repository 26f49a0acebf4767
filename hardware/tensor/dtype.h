// Element types of tensors, buffers and files.
#ifndef PLINTH_HARDWARE_TENSOR_DTYPE_H_
#define PLINTH_HARDWARE_TENSOR_DTYPE_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string_view>

namespace plinth {

// Values are stable: they are written into checkpoints and collectives' fingerprints.
enum class DType : uint8_t {
  kF32 = 1,
  kF64 = 2,
  kBf16 = 3,
  kF16 = 4,
  kF8E4M3 = 5,
  kF8E5M2 = 6,
  kI8 = 7,
  kU8 = 8,
  kI16 = 9,
  kU16 = 10,
  kI32 = 11,
  kU32 = 12,
  kI64 = 13,
  kU64 = 14,
  kBool = 15,
};

// Bytes of one element.
int64_t DTypeSize(DType dtype);
// "f32", "bf16", "f8e4m3", ...
std::string_view DTypeName(DType dtype);
// Inverse of DTypeName; nothing for any other text.
std::optional<DType> ParseDType(std::string_view name);

std::ostream& operator<<(std::ostream& out, DType dtype);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_TENSOR_DTYPE_H_
