// The memory that a collective reads and writes. Views: the owner keeps it until the call, or
// the Work of an asynchronous call, is done.
#ifndef PLINTH_COMM_CALL_BUFFER_H_
#define PLINTH_COMM_CALL_BUFFER_H_

#include <cstdint>
#include <span>
#include <type_traits>

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {

struct Buffer {
  void* data = nullptr;
  int64_t count = 0;  // elements
  DType dtype = DType::kF32;

  int64_t bytes() const { return count * DTypeSize(dtype); }
};

struct ConstBuffer {
  const void* data = nullptr;
  int64_t count = 0;  // elements
  DType dtype = DType::kF32;

  ConstBuffer() = default;
  ConstBuffer(const void* data, int64_t count, DType dtype)
      : data(data), count(count), dtype(dtype) {}
  ConstBuffer(const Buffer& b)  // NOLINT: implicit by design
      : data(b.data), count(b.count), dtype(b.dtype) {}

  int64_t bytes() const { return count * DTypeSize(dtype); }
};

// The dtype whose elements a C++ type holds.
template <typename T>
constexpr DType DTypeOf() {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, float>) {
    return DType::kF32;
  } else if constexpr (std::is_same_v<U, double>) {
    return DType::kF64;
  } else if constexpr (std::is_same_v<U, bool>) {
    return DType::kBool;
  } else {
    static_assert(std::is_integral_v<U>, "pass the dtype of other element types");
    constexpr bool kSigned = std::is_signed_v<U>;
    if constexpr (sizeof(U) == 1) return kSigned ? DType::kI8 : DType::kU8;
    if constexpr (sizeof(U) == 2) return kSigned ? DType::kI16 : DType::kU16;
    if constexpr (sizeof(U) == 4) return kSigned ? DType::kI32 : DType::kU32;
    if constexpr (sizeof(U) == 8) return kSigned ? DType::kI64 : DType::kU64;
  }
}

template <typename T>
Buffer BufferOf(std::span<T> values) {
  return {values.data(), static_cast<int64_t>(values.size()), DTypeOf<T>()};
}
template <typename T>
ConstBuffer BufferOf(std::span<const T> values) {
  return {values.data(), static_cast<int64_t>(values.size()), DTypeOf<T>()};
}
// For element types that C++ lacks: BufferOf(std::span<uint16_t>(codes), DType::kBf16).
template <typename T>
Buffer BufferOf(std::span<T> codes, DType dtype) {
  CHECK_EQ(static_cast<int64_t>(sizeof(T)), DTypeSize(dtype));
  return {codes.data(), static_cast<int64_t>(codes.size()), dtype};
}

}  // namespace plinth::comm

#endif  // PLINTH_COMM_CALL_BUFFER_H_
