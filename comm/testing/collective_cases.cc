#include "plinth/comm/testing/collective_cases.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/numeric.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm::testing {
namespace {

constexpr ReduceOp kReduceOps[] = {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMax, ReduceOp::kMin};
constexpr std::byte kGuard{0xa5};
constexpr int64_t kGuardBytes = 64;

// The value as `dtype` holds it, in its bytes.
void Encode(DType dtype, double value, std::byte* to) {
  const auto put = [to](auto typed) { std::memcpy(to, &typed, sizeof(typed)); };
  switch (dtype) {
    case DType::kF64:
      return put(value);
    case DType::kF32:
      return put(static_cast<float>(value));
    case DType::kBf16:
      return put(F32ToBf16(static_cast<float>(value)));
    case DType::kF16:
      return put(F32ToF16(static_cast<float>(value)));
    case DType::kI8:
    case DType::kU8:
      return put(static_cast<uint8_t>(static_cast<int64_t>(value)));
    case DType::kI32:
    case DType::kU32:
      return put(static_cast<uint32_t>(static_cast<int64_t>(value)));
    default:
      return put(static_cast<int64_t>(value));
  }
}

// Whole numbers from 0 to 16, again and again: sums of 15 ranks are exact even in bf16.
constexpr int64_t kPeriod = 17;
double Input(int rank, int64_t i) { return static_cast<double>((i * 7 + rank * 5) % 17); }

double Expected(ReduceOp op, int size, int64_t i) {
  double result = Input(0, i);
  for (int rank = 1; rank < size; ++rank) {
    const double next = Input(rank, i);
    if (op == ReduceOp::kMax) {
      result = std::max(result, next);
    } else if (op == ReduceOp::kMin) {
      result = std::min(result, next);
    } else {
      result += next;
    }
  }
  return op == ReduceOp::kAvg ? result / size : result;
}

// Elements between guard bytes.
class Guarded {
 public:
  Guarded(DType dtype, int64_t count)
      : dtype_(dtype), count_(count), bytes_(2 * kGuardBytes + count * DTypeSize(dtype), kGuard) {}

  std::byte* data() { return bytes_.data() + kGuardBytes; }
  Buffer buffer() { return {data(), count_, dtype_}; }

  // The elements value(0), value(1), ...; value has the period kPeriod.
  template <typename Value>
  void Fill(const Value& value) {
    const int64_t width = DTypeSize(dtype_);
    const int64_t once = std::min(kPeriod, count_);
    for (int64_t i = 0; i < once; ++i) Encode(dtype_, value(i), data() + i * width);
    for (int64_t i = once; i < count_; i += once) {
      std::memcpy(data() + i * width, data(), std::min(once, count_ - i) * width);
    }
  }

  // Compares bytes with those of want(i). `periodic` says that want has the period kPeriod,
  // which makes it fast: then the buffer equals itself moved by a period.
  template <typename Value>
  std::string Compare(const std::string& what, const Value& want, bool periodic = false) {
    std::byte encoded[8];
    const int64_t width = DTypeSize(dtype_);
    const bool repeats =
        periodic && count_ > kPeriod &&
        std::memcmp(data(), data() + kPeriod * width, (count_ - kPeriod) * width) == 0;
    for (int64_t i = 0; i < (repeats ? kPeriod : count_); ++i) {
      Encode(dtype_, want(i), encoded);
      if (std::memcmp(encoded, data() + i * width, width) != 0) {
        return absl::StrCat(what, ": element ", i, " differs, want ", want(i));
      }
    }
    const auto guard = [](std::byte b) { return b == kGuard; };
    if (!std::all_of(bytes_.begin(), bytes_.begin() + kGuardBytes, guard) ||
        !std::all_of(bytes_.end() - kGuardBytes, bytes_.end(), guard)) {
      return absl::StrCat(what, ": wrote outside the buffer");
    }
    return "";
  }

 private:
  const DType dtype_;
  const int64_t count_;
  std::vector<std::byte> bytes_;
};

std::string Name(const Communicator& comm, const char* op, DType dtype, int64_t count, int detail) {
  return absl::StrCat(op, " of ", std::string(DTypeName(dtype)), " x ", count, " (", detail,
                      "), rank ", comm.rank(), " of ", comm.size());
}

std::string CheckAllReduce(Communicator& comm, DType dtype, ReduceOp op, int64_t count) {
  const std::string name = Name(comm, "all_reduce", dtype, count, static_cast<int>(op));
  Guarded data(dtype, count);
  data.Fill([&](int64_t i) { return Input(comm.rank(), i); });
  const absl::Status status = comm.AllReduce(data.buffer(), op);
  if (!status.ok()) return absl::StrCat(name, ": ", status.ToString());
  return data.Compare(
      name, [&](int64_t i) { return Expected(op, comm.size(), i); }, true);
}

std::string CheckReduceScatter(Communicator& comm, DType dtype, ReduceOp op, int64_t count,
                               bool in_place) {
  const std::string name = Name(comm, "reduce_scatter", dtype, count, static_cast<int>(op));
  Guarded in(dtype, count * comm.size());
  in.Fill([&](int64_t i) { return Input(comm.rank(), i); });
  Guarded apart(dtype, count);
  Buffer out = apart.buffer();
  if (in_place) out.data = in.data() + comm.rank() * out.bytes();
  const absl::Status status = comm.ReduceScatter(in.buffer(), out, op);
  if (!status.ok()) return absl::StrCat(name, ": ", status.ToString());
  const int64_t first = comm.rank() * count;
  const auto want = [&](int64_t i) { return Expected(op, comm.size(), first + i); };
  if (!in_place) return apart.Compare(name, want, true);
  return in.Compare(absl::StrCat("in place ", name), [&](int64_t i) {
    return i >= first && i < first + count ? want(i - first) : Input(comm.rank(), i);
  });
}

std::string CheckAllGather(Communicator& comm, DType dtype, int64_t count, bool in_place) {
  const std::string name = Name(comm, "all_gather", dtype, count, in_place);
  const auto value = [&](int rank, int64_t i) { return Input(rank, i + 3 * rank); };
  Guarded in(dtype, count);
  in.Fill([&](int64_t i) { return value(comm.rank(), i); });
  Guarded out(dtype, count * comm.size());
  Buffer source = in.buffer();
  if (in_place) {
    source.data = out.data() + comm.rank() * source.bytes();
    if (count > 0) std::memcpy(source.data, in.data(), source.bytes());
  }
  const absl::Status status = comm.AllGather(source, out.buffer());
  if (!status.ok()) return absl::StrCat(name, ": ", status.ToString());
  return out.Compare(name,
                     [&](int64_t i) { return value(static_cast<int>(i / count), i % count); });
}

std::string CheckBroadcast(Communicator& comm, DType dtype, int64_t count, int root) {
  const std::string name = Name(comm, "broadcast", dtype, count, root);
  Guarded data(dtype, count);
  data.Fill([&](int64_t i) { return Input(comm.rank(), i); });
  const absl::Status status = comm.Broadcast(data.buffer(), root);
  if (!status.ok()) return absl::StrCat(name, ": ", status.ToString());
  return data.Compare(
      name, [&](int64_t i) { return Input(root, i); }, true);
}

// Every case as a callable that returns a text, so that the first failure ends the run.
template <typename... Cases>
std::string FirstFailure(const Cases&... cases) {
  std::string failure;
  ((failure.empty() ? void(failure = cases()) : void()), ...);
  return failure;
}

std::string CheckReductions(Communicator& comm, DType dtype, int64_t count) {
  for (const ReduceOp op : kReduceOps) {
    if (!CanReduce(op, dtype)) continue;
    const std::string failure =
        FirstFailure([&] { return CheckAllReduce(comm, dtype, op, count); },
                     [&] { return CheckReduceScatter(comm, dtype, op, count, false); },
                     [&] { return CheckReduceScatter(comm, dtype, op, count, true); });
    if (!failure.empty()) return failure;
  }
  return "";
}

}  // namespace

std::string CheckAllCollectives(Communicator& comm, std::span<const int64_t> counts,
                                std::span<const DType> dtypes) {
  for (const int64_t count : counts) {
    for (const DType dtype : dtypes) {
      std::string failure = FirstFailure([&] { return CheckReductions(comm, dtype, count); },
                                         [&] { return CheckAllGather(comm, dtype, count, false); },
                                         [&] { return CheckAllGather(comm, dtype, count, true); });
      for (int root = 0; root < comm.size() && failure.empty(); ++root) {
        failure = CheckBroadcast(comm, dtype, count, root);
      }
      if (!failure.empty()) return failure;
    }
    const absl::Status barrier = comm.Barrier();
    if (!barrier.ok()) return barrier.ToString();
  }
  return "";
}

std::string CheckLargeAllReduce(Communicator& comm, std::span<const int64_t> counts) {
  for (const int64_t count : counts) {
    for (const DType dtype : {DType::kF32, DType::kBf16}) {
      std::string failure = CheckAllReduce(comm, dtype, ReduceOp::kSum, count);
      if (!failure.empty()) return failure;
    }
  }
  return "";
}

float OrderSensitiveValue(int rank, int64_t i) {
  // A multiplicative hash; exponents spread over 2^-12 .. 2^12.
  const uint64_t hash = (static_cast<uint64_t>(i) * 8 + rank + 1) * 0x9e3779b97f4a7c15u;
  const double mantissa = static_cast<double>(hash >> 40) / (1 << 24) - 0.5;
  return static_cast<float>(std::ldexp(mantissa, static_cast<int>((hash >> 20) % 25) - 12));
}

}  // namespace plinth::comm::testing
