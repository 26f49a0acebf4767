#include "plinth/comm/collective/reduce.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/numeric.h"

namespace plinth::comm {
namespace {

// Elements whose accumulators stay in the first-level cache while the sources pass by.
constexpr int64_t kBlock = 1024;

// How an element is stored and what it is accumulated in.
template <typename T>
struct Plain {
  using Stored = T;
  using Accumulator = T;
  static T Load(T value) { return value; }
  static T Store(T value) { return value; }
};

struct Bf16 {
  using Stored = uint16_t;
  using Accumulator = float;
  static float Load(uint16_t code) { return Bf16ToF32(code); }
  // The same codes as F32ToBf16, without branches, so that loops over it vectorise.
  static uint16_t Store(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    const uint32_t quiet_nan = (bits >> 16) | 0x40u;
    return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded);
  }
};

struct F16 {
  using Stored = uint16_t;
  using Accumulator = float;
  static float Load(uint16_t code) { return F16ToF32(code); }
  static uint16_t Store(float value) { return F32ToF16(value); }
};

template <typename T>
T Add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    return a + b;
  }
}

// `b != b` is true for NaN alone; a NaN in `a` stays as no comparison with it holds.
template <typename T>
T Larger(T a, T b) {
  return b > a || b != b ? b : a;
}
template <typename T>
T Smaller(T a, T b) {
  return b < a || b != b ? b : a;
}

template <typename Codec, typename Combine>
void ReduceBlocks(std::span<const void* const> sources, int64_t count, void* out, bool divide,
                  const Combine& combine) {
  using Stored = typename Codec::Stored;
  using Accumulator = typename Codec::Accumulator;
  Accumulator sums[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t n = std::min(kBlock, count - begin);
    const Stored* first = static_cast<const Stored*>(sources[0]) + begin;
    for (int64_t i = 0; i < n; ++i) sums[i] = Codec::Load(first[i]);
    for (size_t r = 1; r < sources.size(); ++r) {
      const Stored* next = static_cast<const Stored*>(sources[r]) + begin;
      for (int64_t i = 0; i < n; ++i) sums[i] = combine(sums[i], Codec::Load(next[i]));
    }
    if constexpr (std::is_floating_point_v<Accumulator>) {
      const auto ranks = static_cast<Accumulator>(sources.size());
      if (divide) {
        for (int64_t i = 0; i < n; ++i) sums[i] /= ranks;
      }
    }
    Stored* target = static_cast<Stored*>(out) + begin;
    for (int64_t i = 0; i < n; ++i) target[i] = Codec::Store(sums[i]);
  }
}

template <typename Codec>
void ReduceAs(ReduceOp op, std::span<const void* const> sources, int64_t count, void* out) {
  using A = typename Codec::Accumulator;
  if (op == ReduceOp::kMax) {
    ReduceBlocks<Codec>(sources, count, out, false, [](A a, A b) { return Larger(a, b); });
  } else if (op == ReduceOp::kMin) {
    ReduceBlocks<Codec>(sources, count, out, false, [](A a, A b) { return Smaller(a, b); });
  } else {
    ReduceBlocks<Codec>(sources, count, out, op == ReduceOp::kAvg,
                        [](A a, A b) { return Add(a, b); });
  }
}

}  // namespace

std::string_view ReduceOpName(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kAvg:
      return "avg";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kNone:
      break;
  }
  return "none";
}

bool CanReduce(ReduceOp op, DType dtype) {
  if (op == ReduceOp::kNone) return false;
  switch (dtype) {
    case DType::kF64:
    case DType::kF32:
    case DType::kBf16:
    case DType::kF16:
      return true;
    case DType::kI8:
    case DType::kU8:
    case DType::kI32:
    case DType::kU32:
    case DType::kI64:
    case DType::kU64:
      return op != ReduceOp::kAvg;
    default:
      return false;
  }
}

void Reduce(ReduceOp op, DType dtype, std::span<const void* const> sources, int64_t count,
            void* out) {
  CHECK(CanReduce(op, dtype)) << ReduceOpName(op) << " of " << dtype;
  CHECK(!sources.empty());
  switch (dtype) {
    case DType::kF64:
      return ReduceAs<Plain<double>>(op, sources, count, out);
    case DType::kF32:
      return ReduceAs<Plain<float>>(op, sources, count, out);
    case DType::kBf16:
      return ReduceAs<Bf16>(op, sources, count, out);
    case DType::kF16:
      return ReduceAs<F16>(op, sources, count, out);
    case DType::kI8:
      return ReduceAs<Plain<int8_t>>(op, sources, count, out);
    case DType::kU8:
      return ReduceAs<Plain<uint8_t>>(op, sources, count, out);
    case DType::kI32:
      return ReduceAs<Plain<int32_t>>(op, sources, count, out);
    case DType::kU32:
      return ReduceAs<Plain<uint32_t>>(op, sources, count, out);
    case DType::kI64:
      return ReduceAs<Plain<int64_t>>(op, sources, count, out);
    default:
      return ReduceAs<Plain<uint64_t>>(op, sources, count, out);
  }
}

}  // namespace plinth::comm
