#include "plinth/hardware/tensor/dtype.h"

#include "plinth/hardware/base/check.h"

namespace plinth {
namespace {

struct Row {
  DType dtype;
  int64_t bytes;
  std::string_view name;
};
constexpr Row kRows[] = {
    {DType::kF32, 4, "f32"}, {DType::kF64, 8, "f64"},       {DType::kBf16, 2, "bf16"},
    {DType::kF16, 2, "f16"}, {DType::kF8E4M3, 1, "f8e4m3"}, {DType::kF8E5M2, 1, "f8e5m2"},
    {DType::kI8, 1, "i8"},   {DType::kU8, 1, "u8"},         {DType::kI16, 2, "i16"},
    {DType::kU16, 2, "u16"}, {DType::kI32, 4, "i32"},       {DType::kU32, 4, "u32"},
    {DType::kI64, 8, "i64"}, {DType::kU64, 8, "u64"},       {DType::kBool, 1, "bool"},
};

const Row& Find(DType dtype) {
  const int index = static_cast<int>(dtype) - 1;
  CHECK(index >= 0 && index < static_cast<int>(std::size(kRows))) << "dtype code " << index + 1;
  return kRows[index];
}

}  // namespace

int64_t DTypeSize(DType dtype) { return Find(dtype).bytes; }
std::string_view DTypeName(DType dtype) { return Find(dtype).name; }

std::optional<DType> ParseDType(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << DTypeName(dtype); }

}  // namespace plinth
