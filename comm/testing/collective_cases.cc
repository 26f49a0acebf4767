#include "plinth/comm/testing/collective_cases.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/numeric.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm::testing {
namespace {

constexpr ReduceOp kReduceOps[] = {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMax, ReduceOp::kMin,
                                   ReduceOp::kProd};
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
    case DType::kF8E4M3:
      return put(F32ToE4m3(static_cast<float>(value)));
    case DType::kF8E5M2:
      return put(F32ToE5m2(static_cast<float>(value)));
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

// Whole numbers from 0 to 7, exact in every dtype, as are the sums of 15 ranks in f32.
constexpr int64_t kPeriod = 17;
double Input(int rank, int64_t i) { return static_cast<double>((i * 7 + rank * 5) % 17 % 8); }
// 1 and 2, whose products stay small.
double Factor(int rank, int64_t i) { return static_cast<double>(1 + (i % 17 + rank) % 2); }
double InputTo(ReduceOp op, int rank, int64_t i) {
  return op == ReduceOp::kProd ? Factor(rank, i) : Input(rank, i);
}

double Expected(ReduceOp op, int size, int64_t i) {
  double result = InputTo(op, 0, i);
  for (int rank = 1; rank < size; ++rank) {
    const double next = InputTo(op, rank, i);
    if (op == ReduceOp::kMax) {
      result = std::max(result, next);
    } else if (op == ReduceOp::kMin) {
      result = std::min(result, next);
    } else if (op == ReduceOp::kProd) {
      result *= next;
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

std::string Failed(const std::string& name, const absl::Status& status) {
  return status.ok() ? "" : absl::StrCat(name, ": ", status.ToString());
}

std::string CheckAllReduce(Communicator& comm, DType dtype, ReduceOp op, int64_t count,
                           bool in_place) {
  const std::string name = Name(comm, "all_reduce", dtype, count, static_cast<int>(op));
  const auto input = [&](int64_t i) { return InputTo(op, comm.rank(), i); };
  const auto want = [&](int64_t i) { return Expected(op, comm.size(), i); };
  Guarded in(dtype, count);
  in.Fill(input);
  if (in_place) {
    std::string failure = Failed(name, comm.AllReduce(in.buffer(), op));
    return failure.empty() ? in.Compare(name, want, true) : failure;
  }
  Guarded out(dtype, count);
  std::string failure = Failed(name, comm.AllReduce(in.buffer(), out.buffer(), op));
  if (failure.empty()) failure = out.Compare(name, want, true);
  return failure.empty() ? in.Compare(absl::StrCat("input of ", name), input, true) : failure;
}

std::string CheckReduce(Communicator& comm, DType dtype, ReduceOp op, int64_t count, int root,
                        bool in_place) {
  const std::string name = Name(comm, "reduce", dtype, count, root);
  const auto input = [&](int64_t i) { return InputTo(op, comm.rank(), i); };
  const auto want = [&](int64_t i) { return Expected(op, comm.size(), i); };
  const bool is_root = comm.rank() == root;
  Guarded in(dtype, count);
  in.Fill(input);
  Guarded apart(dtype, is_root ? count : 0);
  Guarded& out = in_place && is_root ? in : apart;
  std::string failure = Failed(name, comm.Reduce(in.buffer(), out.buffer(), root, op));
  if (failure.empty() && is_root) failure = out.Compare(name, want, true);
  if (!failure.empty() || (in_place && is_root)) return failure;
  return in.Compare(absl::StrCat("input of ", name), input, true);
}

// Elements of each rank's share: all `count`, or some of them none.
std::vector<int64_t> ShareCounts(const Communicator& comm, int64_t count, bool uneven) {
  std::vector<int64_t> counts(comm.size(), count);
  for (int rank = 0; uneven && rank < comm.size(); ++rank) {
    counts[rank] = rank % 3 == 1 ? 0 : count + 2 * rank;
  }
  return counts;
}
int64_t SumOf(const std::vector<int64_t>& counts, size_t first) {
  return std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(first),
                         int64_t{0});
}

std::string CheckReduceScatter(Communicator& comm, DType dtype, ReduceOp op, int64_t count,
                               bool uneven, bool in_place) {
  const std::string name = Name(comm, "reduce_scatter", dtype, count, static_cast<int>(op));
  const std::vector<int64_t> counts = ShareCounts(comm, count, uneven);
  const int64_t first = SumOf(counts, comm.rank());
  const int64_t share = counts[comm.rank()];
  const auto input = [&](int64_t i) { return InputTo(op, comm.rank(), i); };
  const auto want = [&](int64_t i) { return Expected(op, comm.size(), first + i); };
  Guarded in(dtype, SumOf(counts, counts.size()));
  in.Fill(input);
  Guarded apart(dtype, share);
  Buffer out = apart.buffer();
  if (in_place) out.data = in.data() + first * DTypeSize(dtype);
  const std::string failure =
      Failed(name, uneven ? comm.ReduceScatterV(in.buffer(), out, counts, op)
                          : comm.ReduceScatter(in.buffer(), out, op));
  if (!failure.empty()) return failure;
  if (!in_place) {
    const std::string differs = apart.Compare(name, want, true);
    return differs.empty() ? in.Compare(absl::StrCat("input of ", name), input, true) : differs;
  }
  // The rest of a buffer used in place is the input still.
  return in.Compare(absl::StrCat("in place ", name), [&](int64_t i) {
    return i >= first && i < first + share ? want(i - first) : input(i);
  });
}

std::string CheckAllGather(Communicator& comm, DType dtype, int64_t count, bool uneven,
                           bool in_place) {
  const std::string name = Name(comm, "all_gather", dtype, count, in_place);
  const std::vector<int64_t> counts = ShareCounts(comm, count, uneven);
  const auto value = [&](int rank, int64_t i) { return Input(rank, i + 3 * rank); };
  Guarded in(dtype, counts[comm.rank()]);
  in.Fill([&](int64_t i) { return value(comm.rank(), i); });
  Guarded out(dtype, SumOf(counts, counts.size()));
  Buffer source = in.buffer();
  if (in_place) {
    source.data = out.data() + SumOf(counts, comm.rank()) * DTypeSize(dtype);
    if (source.bytes() > 0) std::memcpy(source.data, in.data(), source.bytes());
  }
  const std::string failure = Failed(name, uneven ? comm.AllGatherV(source, out.buffer(), counts)
                                                  : comm.AllGather(source, out.buffer()));
  if (!failure.empty()) return failure;
  int from = 0;
  int64_t begin = 0;  // of the share of `from`
  return out.Compare(name, [&](int64_t i) {
    while (i >= begin + counts[from]) begin += counts[from++];
    return value(from, i - begin);
  });
}

std::string CheckBroadcast(Communicator& comm, DType dtype, int64_t count, int root) {
  const std::string name = Name(comm, "broadcast", dtype, count, root);
  Guarded data(dtype, count);
  data.Fill([&](int64_t i) { return Input(comm.rank(), i); });
  const std::string failure = Failed(name, comm.Broadcast(data.buffer(), root));
  if (!failure.empty()) return failure;
  return data.Compare(
      name, [&](int64_t i) { return Input(root, i); }, true);
}

std::string CheckGather(Communicator& comm, DType dtype, int64_t count, int root, bool in_place) {
  const std::string name = Name(comm, "gather", dtype, count, root);
  const bool is_root = comm.rank() == root;
  const auto value = [&](int rank, int64_t i) { return Input(rank, i + 3 * rank); };
  Guarded in(dtype, count);
  in.Fill([&](int64_t i) { return value(comm.rank(), i); });
  Guarded out(dtype, is_root ? count * comm.size() : 0);
  Buffer source = in.buffer();
  if (in_place && is_root) {
    source.data = out.data() + root * source.bytes();
    if (count > 0) std::memcpy(source.data, in.data(), source.bytes());
  }
  const std::string failure = Failed(name, comm.Gather(source, out.buffer(), root));
  if (!failure.empty() || !is_root) return failure;
  return out.Compare(name,
                     [&](int64_t i) { return value(static_cast<int>(i / count), i % count); });
}

std::string CheckScatter(Communicator& comm, DType dtype, int64_t count, int root, bool in_place) {
  const std::string name = Name(comm, "scatter", dtype, count, root);
  const bool is_root = comm.rank() == root;
  const auto input = [&](int64_t i) { return Input(root, i); };
  const int64_t first = comm.rank() * count;
  Guarded in(dtype, is_root ? count * comm.size() : 0);
  in.Fill(input);
  Guarded apart(dtype, count);
  Buffer out = apart.buffer();
  if (in_place && is_root) out.data = in.data() + root * out.bytes();
  const std::string failure = Failed(name, comm.Scatter(in.buffer(), out, root));
  if (!failure.empty()) return failure;
  const std::string differs = in.Compare(absl::StrCat("input of ", name), input, true);
  if (!differs.empty() || (in_place && is_root)) return differs;
  return apart.Compare(
      name, [&](int64_t i) { return input(first + i); }, true);
}

// What rank `from` has for rank `to`.
int64_t PairCount(int from, int to, int64_t count, bool uneven) {
  if (!uneven) return count;
  return (3 * from + 5 * to) % 4 == 0 ? 0 : count + (from + to) % 3;
}

std::string CheckAllToAll(Communicator& comm, DType dtype, int64_t count, bool uneven) {
  const std::string name = Name(comm, "all_to_all", dtype, count, uneven);
  std::vector<int64_t> sends;
  std::vector<int64_t> receives;
  std::vector<int64_t> offsets;  // of what this rank gets, in the input of its sender
  for (int peer = 0; peer < comm.size(); ++peer) {
    sends.push_back(PairCount(comm.rank(), peer, count, uneven));
    receives.push_back(PairCount(peer, comm.rank(), count, uneven));
    int64_t before = 0;
    for (int to = 0; to < comm.rank(); ++to) before += PairCount(peer, to, count, uneven);
    offsets.push_back(before);
  }
  Guarded in(dtype, SumOf(sends, sends.size()));
  in.Fill([&](int64_t i) { return Input(comm.rank(), i); });
  Guarded out(dtype, SumOf(receives, receives.size()));
  const std::string failure =
      Failed(name, uneven ? comm.AllToAllV(in.buffer(), sends, out.buffer(), receives)
                          : comm.AllToAll(in.buffer(), out.buffer()));
  if (!failure.empty()) return failure;
  int from = 0;
  int64_t begin = 0;
  return out.Compare(name, [&](int64_t i) {
    while (i >= begin + receives[from]) begin += receives[from++];
    return Input(from, offsets[from] + i - begin);
  });
}

// Every rank sends to the next and to itself, and receives from the one before.
std::string CheckExchange(Communicator& comm, DType dtype, int64_t count) {
  const std::string name = Name(comm, "exchange", dtype, count, 0);
  const int next = (comm.rank() + 1) % comm.size();
  const int previous = (comm.rank() + comm.size() - 1) % comm.size();
  Guarded first(dtype, count);
  Guarded second(dtype, count + 1);
  first.Fill([&](int64_t i) { return Input(comm.rank(), i); });
  second.Fill([&](int64_t i) { return Input(comm.rank(), i + 5); });
  Guarded got_first(dtype, count);
  Guarded got_second(dtype, count + 1);
  const SendTo sends[] = {{next, first.buffer()}, {next, second.buffer()}};
  const ReceiveFrom receives[] = {{previous, got_first.buffer()}, {previous, got_second.buffer()}};
  std::string failure = Failed(name, comm.Exchange(sends, receives));
  if (failure.empty()) {
    failure = got_first.Compare(
        name, [&](int64_t i) { return Input(previous, i); }, true);
  }
  if (failure.empty()) {
    failure = got_second.Compare(
        name, [&](int64_t i) { return Input(previous, i + 5); }, true);
  }
  return failure;
}

// Rank 0 sends to each other rank in turn.
std::string CheckSendReceive(Communicator& comm, DType dtype, int64_t count) {
  const std::string name = Name(comm, "send and receive", dtype, count, 0);
  Guarded data(dtype, count);
  data.Fill([&](int64_t i) { return Input(comm.rank(), i); });
  if (comm.rank() != 0) {
    const std::string failure = Failed(name, comm.Receive(data.buffer(), 0));
    if (!failure.empty()) return failure;
    return data.Compare(
        name, [&](int64_t i) { return Input(0, i); }, true);
  }
  for (int peer = 1; peer < comm.size(); ++peer) {
    const std::string failure = Failed(name, comm.Send(data.buffer(), peer));
    if (!failure.empty()) return failure;
  }
  return "";
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
    for (const bool in_place : {false, true}) {
      std::string failure =
          FirstFailure([&] { return CheckAllReduce(comm, dtype, op, count, in_place); },
                       [&] { return CheckReduceScatter(comm, dtype, op, count, false, in_place); },
                       [&] { return CheckReduceScatter(comm, dtype, op, count, true, in_place); });
      for (int root = 0; root < comm.size() && failure.empty(); ++root) {
        failure = CheckReduce(comm, dtype, op, count, root, in_place);
        // Every root with sums, one with the other reductions, which differ in no other way.
        if (op != ReduceOp::kSum) break;
      }
      if (!failure.empty()) return failure;
    }
  }
  return "";
}

std::string CheckMoves(Communicator& comm, DType dtype, int64_t count) {
  std::string failure = FirstFailure([&] { return CheckAllToAll(comm, dtype, count, false); },
                                     [&] { return CheckAllToAll(comm, dtype, count, true); },
                                     [&] { return CheckExchange(comm, dtype, count); },
                                     [&] { return CheckSendReceive(comm, dtype, count); });
  for (const bool in_place : {false, true}) {
    if (!failure.empty()) return failure;
    failure = FirstFailure([&] { return CheckAllGather(comm, dtype, count, false, in_place); },
                           [&] { return CheckAllGather(comm, dtype, count, true, in_place); });
    for (int root = 0; root < comm.size() && failure.empty(); ++root) {
      failure = FirstFailure([&] { return CheckGather(comm, dtype, count, root, in_place); },
                             [&] { return CheckScatter(comm, dtype, count, root, in_place); });
    }
  }
  for (int root = 0; root < comm.size() && failure.empty(); ++root) {
    failure = CheckBroadcast(comm, dtype, count, root);
  }
  return failure;
}

}  // namespace

std::string CheckAllCollectives(Communicator& comm, std::span<const int64_t> counts,
                                std::span<const DType> dtypes) {
  for (const int64_t count : counts) {
    for (const DType dtype : dtypes) {
      const std::string failure = FirstFailure([&] { return CheckReductions(comm, dtype, count); },
                                               [&] { return CheckMoves(comm, dtype, count); });
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
      std::string failure = CheckAllReduce(comm, dtype, ReduceOp::kSum, count, true);
      if (!failure.empty()) return failure;
    }
  }
  return "";
}

std::string BitsOfReductions(Communicator& comm, int64_t count, DType dtype) {
  const int64_t bytes = count * DTypeSize(dtype);
  std::string text;
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kProd}) {
    std::vector<std::byte> data(bytes);
    for (int64_t i = 0; i < count; ++i) {
      Encode(dtype, OrderSensitiveValue(comm.rank(), i), data.data() + i * DTypeSize(dtype));
    }
    const absl::Status status = comm.AllReduce({data.data(), count, dtype}, op);
    if (!status.ok()) return status.ToString();
    std::vector<std::byte> all(bytes * comm.size());
    const absl::Status gathered = comm.AllGather({data.data(), bytes, DType::kU8},
                                                 {all.data(), bytes * comm.size(), DType::kU8});
    if (!gathered.ok()) return gathered.ToString();
    for (int rank = 0; rank < comm.size(); ++rank) {
      if (bytes > 0 && std::memcmp(all.data() + rank * bytes, data.data(), bytes) != 0) {
        return absl::StrCat("ranks differ: ", comm.rank(), " and ", rank);
      }
    }
    text.append(reinterpret_cast<const char*>(data.data()), bytes);
  }
  return text;
}

float OrderSensitiveValue(int rank, int64_t i) {
  // A multiplicative hash; exponents spread over 2^-12 .. 2^12.
  const uint64_t hash = (static_cast<uint64_t>(i) * 8 + rank + 1) * 0x9e3779b97f4a7c15u;
  const double mantissa = static_cast<double>(hash >> 40) / (1 << 24) - 0.5;
  return static_cast<float>(std::ldexp(mantissa, static_cast<int>((hash >> 20) % 25) - 12));
}

}  // namespace plinth::comm::testing
