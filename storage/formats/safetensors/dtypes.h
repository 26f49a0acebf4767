// The element types that safetensors names, and ours.
#ifndef PLINTH_STORAGE_FORMATS_SAFETENSORS_DTYPES_H_
#define PLINTH_STORAGE_FORMATS_SAFETENSORS_DTYPES_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::storage {

// "F32", "BF16", "F8_E4M3", ... Every DType has a name in the format.
std::string_view SafetensorsName(DType dtype);

// Inverse. kUnimplemented for a type of the format that DType lacks ("F4", "C64", ...),
// kInvalidArgument for any other text.
absl::StatusOr<DType> ParseSafetensorsDType(std::string_view name);

// Position in the format's own order; tensors are written from the highest to the lowest,
// which puts wide elements first and so aligns each tensor to its element size.
int SafetensorsOrder(DType dtype);

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_FORMATS_SAFETENSORS_DTYPES_H_
