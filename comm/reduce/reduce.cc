#include "plinth/comm/reduce/reduce.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "absl/container/inlined_vector.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/numeric.h"

namespace plinth::comm {
namespace {

// Elements whose accumulators stay in the first-level cache while the sources pass by.
constexpr int64_t kBlock = 1024;

// Notes and user memory may lie anywhere; the loops vectorise all the same.
template <typename T>
struct Anywhere {
  typedef T type __attribute__((aligned(1), may_alias));
};

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

template <typename Decode>
constexpr std::array<float, 256> DecodeAll(const Decode& decode) {
  std::array<float, 256> values{};
  for (int code = 0; code < 256; ++code) values[code] = decode(static_cast<uint8_t>(code));
  return values;
}

struct F8E4M3 {
  using Stored = uint8_t;
  using Accumulator = float;
  static constexpr std::array<float, 256> kValues = DecodeAll(E4m3ToF32);
  static float Load(uint8_t code) { return kValues[code]; }
  static uint8_t Store(float value) { return F32ToE4m3(value); }
};

struct F8E5M2 {
  using Stored = uint8_t;
  using Accumulator = float;
  static constexpr std::array<float, 256> kValues = DecodeAll(E5m2ToF32);
  static float Load(uint8_t code) { return kValues[code]; }
  static uint8_t Store(float value) { return F32ToE5m2(value); }
};

struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
    } else {
      return a + b;
    }
  }
};

struct Multiply {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      // As wide as int at least, or the product of two small unsigned could overflow int.
      using U = std::common_type_t<unsigned, std::make_unsigned_t<T>>;
      return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    } else {
      return a * b;
    }
  }
};

// `b != b` is true for NaN alone; a NaN in `a` stays as no comparison with it holds.
struct Larger {
  template <typename T>
  T operator()(T a, T b) const {
    return b > a || b != b ? b : a;
  }
};
struct Smaller {
  template <typename T>
  T operator()(T a, T b) const {
    return b < a || b != b ? b : a;
  }
};

struct Job {
  std::span<const ReduceSource> sources;
  int64_t count;
  void* out;
  bool partial;  // writes accumulators
  int divisor;   // 1 unless the sum is to be divided
};

template <typename Codec>
const typename Anywhere<typename Codec::Stored>::type* Stored(const ReduceSource& source) {
  return static_cast<const typename Anywhere<typename Codec::Stored>::type*>(source.data);
}
template <typename Codec>
const typename Anywhere<typename Codec::Accumulator>::type* Partial(const ReduceSource& source) {
  return static_cast<const typename Anywhere<typename Codec::Accumulator>::type*>(source.data);
}

template <typename Codec, typename Op>
void ReduceBlock(const Job& job, int64_t begin, int64_t n, const Op& combine) {
  using A = typename Codec::Accumulator;
  A sums[kBlock];
  const ReduceSource& first = job.sources.front();
  if (first.partial) {
    for (int64_t i = 0; i < n; ++i) sums[i] = Partial<Codec>(first)[begin + i];
  } else {
    for (int64_t i = 0; i < n; ++i) sums[i] = Codec::Load(Stored<Codec>(first)[begin + i]);
  }
  for (const ReduceSource& next : job.sources.subspan(1)) {
    if (next.partial) {
      const auto* from = Partial<Codec>(next) + begin;
      for (int64_t i = 0; i < n; ++i) sums[i] = combine(sums[i], A(from[i]));
    } else {
      const auto* from = Stored<Codec>(next) + begin;
      for (int64_t i = 0; i < n; ++i) sums[i] = combine(sums[i], Codec::Load(from[i]));
    }
  }
  if constexpr (std::is_floating_point_v<A>) {
    if (job.divisor != 1) {
      const A divisor = static_cast<A>(job.divisor);
      for (int64_t i = 0; i < n; ++i) sums[i] /= divisor;
    }
  }
  if (job.partial) {
    std::memcpy(static_cast<A*>(job.out) + begin, sums, n * sizeof(A));
  } else {
    auto* out = static_cast<typename Anywhere<typename Codec::Stored>::type*>(job.out) + begin;
    for (int64_t i = 0; i < n; ++i) out[i] = Codec::Store(sums[i]);
  }
}

template <typename Codec, typename Op>
void ReduceBlocks(const Job& job, const Op& combine) {
  for (int64_t begin = 0; begin < job.count; begin += kBlock) {
    ReduceBlock<Codec>(job, begin, std::min(kBlock, job.count - begin), combine);
  }
}

template <typename Codec>
void ReduceAs(ReduceOp op, const Job& job) {
  switch (op) {
    case ReduceOp::kMax:
      return ReduceBlocks<Codec>(job, Larger());
    case ReduceOp::kMin:
      return ReduceBlocks<Codec>(job, Smaller());
    case ReduceOp::kProd:
      return ReduceBlocks<Codec>(job, Multiply());
    default:
      return ReduceBlocks<Codec>(job, Add());
  }
}

void Run(ReduceOp op, DType dtype, const Job& job) {
  CHECK(CanReduce(op, dtype)) << ReduceOpName(op) << " of " << dtype;
  CHECK(!job.sources.empty());
  switch (dtype) {
    case DType::kF64:
      return ReduceAs<Plain<double>>(op, job);
    case DType::kF32:
      return ReduceAs<Plain<float>>(op, job);
    case DType::kBf16:
      return ReduceAs<Bf16>(op, job);
    case DType::kF16:
      return ReduceAs<F16>(op, job);
    case DType::kF8E4M3:
      return ReduceAs<F8E4M3>(op, job);
    case DType::kF8E5M2:
      return ReduceAs<F8E5M2>(op, job);
    case DType::kI8:
      return ReduceAs<Plain<int8_t>>(op, job);
    case DType::kU8:
      return ReduceAs<Plain<uint8_t>>(op, job);
    case DType::kI32:
      return ReduceAs<Plain<int32_t>>(op, job);
    case DType::kU32:
      return ReduceAs<Plain<uint32_t>>(op, job);
    case DType::kI64:
      return ReduceAs<Plain<int64_t>>(op, job);
    default:
      return ReduceAs<Plain<uint64_t>>(op, job);
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
    case ReduceOp::kProd:
      return "prod";
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
    case DType::kF8E4M3:
    case DType::kF8E5M2:
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

DType AccumulatorOf(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
    case DType::kF16:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return DType::kF32;
    default:
      return dtype;
  }
}

void ReducePartial(ReduceOp op, DType dtype, std::span<const ReduceSource> sources, int64_t count,
                   void* out) {
  Run(op, dtype, {sources, count, out, true, 1});
}

void ReduceFinish(ReduceOp op, DType dtype, std::span<const ReduceSource> sources, int64_t count,
                  void* out, int ranks) {
  Run(op, dtype, {sources, count, out, false, op == ReduceOp::kAvg ? ranks : 1});
}

void Reduce(ReduceOp op, DType dtype, std::span<const void* const> sources, int64_t count,
            void* out) {
  absl::InlinedVector<ReduceSource, 64> typed;
  for (const void* source : sources) typed.push_back({source, false});
  ReduceFinish(op, dtype, typed, count, out, static_cast<int>(sources.size()));
}

}  // namespace plinth::comm
