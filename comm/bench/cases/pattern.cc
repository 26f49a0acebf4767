#include "plinth/comm/bench/cases/pattern.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/numeric.h"

namespace plinth::comm {
namespace {

constexpr int kPoison = 0xa5;

// Which of the 16 codes element i has.
inline uint32_t CodeIndex(int64_t i) {
  uint32_t h = static_cast<uint32_t>(i) * 0x9e3779b1u;
  h = (h ^ (h >> 15)) * 0x85ebca77u;
  return h >> 28;
}

// Bits that look random and differ for all `n`.
uint64_t ScatterBits(uint64_t n) {
  n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9u;
  n = (n ^ (n >> 27)) * 0x94d049bb133111ebu;
  return n ^ (n >> 31);
}

uint64_t Encode(DType dtype, double value) {
  const float narrow = static_cast<float>(value);
  switch (dtype) {
    case DType::kF32:
      return std::bit_cast<uint32_t>(narrow);
    case DType::kF64:
      return std::bit_cast<uint64_t>(value);
    case DType::kBf16:
      return F32ToBf16(narrow);
    case DType::kF16:
      return F32ToF16(narrow);
    case DType::kF8E4M3:
      return F32ToE4m3(narrow);
    case DType::kF8E5M2:
      return F32ToE5m2(narrow);
    default:  // integers; sums that do not fit wrap, as the reduction's do
      return static_cast<uint64_t>(static_cast<int64_t>(value));
  }
}

template <typename Word>
void FillWords(const std::array<uint64_t, 16>& codes, int64_t begin, int64_t count, void* data) {
  Word words[16];
  for (int code = 0; code < 16; ++code) words[code] = static_cast<Word>(codes[code]);
  auto* out = static_cast<Word*>(data);
  for (int64_t i = 0; i < count; ++i) out[i] = words[CodeIndex(begin + i)];
}

template <typename Word>
int64_t CountWrongWords(const std::array<uint64_t, 16>& codes, int64_t begin, int64_t count,
                        const void* data) {
  Word words[16];
  for (int code = 0; code < 16; ++code) words[code] = static_cast<Word>(codes[code]);
  const auto* got = static_cast<const Word*>(data);
  int64_t wrong = 0;
  for (int64_t i = 0; i < count; ++i) wrong += got[i] != words[CodeIndex(begin + i)];
  return wrong;
}

// Calls `use` with a value of the unsigned type that has the dtype's size.
template <typename Use>
void WithWord(DType dtype, const Use& use) {
  switch (DTypeSize(dtype)) {
    case 1:
      return use(uint8_t{});
    case 2:
      return use(uint16_t{});
    case 4:
      return use(uint32_t{});
    default:
      return use(uint64_t{});
  }
}

}  // namespace

Pattern::Pattern(DType dtype, ReduceOp op, int ranks)
    : dtype_(dtype), op_(op), ranks_(ranks), inputs_(ranks) {
  CHECK(op == ReduceOp::kNone || CanReduce(op, dtype)) << ReduceOpName(op) << " " << dtype;
  for (int code = 0; code < kCodes; ++code) {
    for (int rank = 0; rank < ranks; ++rank) {
      if (op == ReduceOp::kNone) {
        uint64_t bits = ScatterBits(static_cast<uint64_t>(rank) * kCodes + code + 1);
        if ((bits & 0xff) == kPoison) bits ^= 1;
        inputs_[rank][code] = bits;
      } else {
        inputs_[rank][code] = Encode(dtype, InputOf(rank, code));
      }
    }
    if (op != ReduceOp::kNone) reduced_[code] = Encode(dtype, ResultOf(code));
  }
}

// Small enough that results are exact in every type for dozens of ranks.
double Pattern::InputOf(int rank, int code) const {
  switch (op_) {
    case ReduceOp::kAvg: {
      // Deviations that cancel: the average is whole whatever the number of ranks.
      const bool odd_one_out = rank == ranks_ - 1 && ranks_ % 2 == 1;
      return 1 + code % 4 + (odd_one_out ? 0 : rank % 2 == 0 ? 1 : -1);
    }
    case ReduceOp::kProd:
      return (rank + code) % 8 == 0 ? 2 : 1;
    case ReduceOp::kMin:
    case ReduceOp::kMax:
      return (5 * rank + 3 * code) % 7;
    default:
      return (rank + code) % 4;
  }
}

double Pattern::ResultOf(int code) const {
  double result = InputOf(0, code);
  for (int rank = 1; rank < ranks_; ++rank) {
    const double value = InputOf(rank, code);
    if (op_ == ReduceOp::kMin) {
      result = std::min(result, value);
    } else if (op_ == ReduceOp::kMax) {
      result = std::max(result, value);
    } else if (op_ == ReduceOp::kProd) {
      result *= value;
    } else {
      result += value;
    }
  }
  return op_ == ReduceOp::kAvg ? result / ranks_ : result;
}

const Pattern::Codes& Pattern::CodesOf(int source) const {
  CHECK(source >= kReduced && source < ranks_) << source;
  return source == kReduced ? reduced_ : inputs_[source];
}

void Pattern::Fill(int rank, int64_t begin, int64_t count, void* data) const {
  CHECK_GE(rank, 0);
  WithWord(dtype_,
           [&](auto word) { FillWords<decltype(word)>(CodesOf(rank), begin, count, data); });
}

int64_t Pattern::CountWrong(int source, int64_t begin, int64_t count, const void* data) const {
  int64_t wrong = 0;
  WithWord(dtype_, [&](auto word) {
    wrong = CountWrongWords<decltype(word)>(CodesOf(source), begin, count, data);
  });
  return wrong;
}

void Pattern::Poison(int64_t count, void* data) const {
  if (count > 0) std::memset(data, kPoison, static_cast<size_t>(count * DTypeSize(dtype_)));
}

}  // namespace plinth::comm
