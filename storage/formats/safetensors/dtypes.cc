#include "plinth/storage/formats/safetensors/dtypes.h"

#include <iterator>
#include <string>

#include "plinth/hardware/base/check.h"
#include "plinth/storage/formats/safetensors/json_events.h"

namespace plinth::storage {
namespace {

struct Entry {
  DType dtype;
  std::string_view name;
};

// In the format's order.
constexpr Entry kTypes[] = {
    {DType::kBool, "BOOL"},      {DType::kU8, "U8"},          {DType::kI8, "I8"},
    {DType::kF8E5M2, "F8_E5M2"}, {DType::kF8E4M3, "F8_E4M3"}, {DType::kI16, "I16"},
    {DType::kU16, "U16"},        {DType::kF16, "F16"},        {DType::kBf16, "BF16"},
    {DType::kI32, "I32"},        {DType::kU32, "U32"},        {DType::kF32, "F32"},
    {DType::kF64, "F64"},        {DType::kI64, "I64"},        {DType::kU64, "U64"},
};
constexpr std::string_view kUnsupported[] = {"F4", "F6_E2M3", "F6_E3M2", "F8_E8M0", "C64"};

}  // namespace

int SafetensorsOrder(DType dtype) {
  for (int i = 0; i < static_cast<int>(std::size(kTypes)); ++i) {
    if (kTypes[i].dtype == dtype) return i;
  }
  CHECK(false) << "dtype " << dtype << " has no safetensors name";
  return -1;
}

std::string_view SafetensorsName(DType dtype) { return kTypes[SafetensorsOrder(dtype)].name; }

absl::StatusOr<DType> ParseSafetensorsDType(std::string_view name) {
  for (const Entry& entry : kTypes) {
    if (entry.name == name) return entry.dtype;
  }
  for (const std::string_view known : kUnsupported) {
    if (known == name) {
      return absl::UnimplementedError("dtype " + Quoted(name) + " is not supported");
    }
  }
  std::string names;
  for (const Entry& entry : kTypes) names.append(names.empty() ? "" : ", ").append(entry.name);
  return absl::InvalidArgumentError("unknown dtype " + Quoted(name) + ", expected one of " + names);
}

}  // namespace plinth::storage
