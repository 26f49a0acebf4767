#include "plinth/comm/testing/legal_programs.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/rng.h"

namespace plinth::comm::testing {
namespace {

constexpr OpKind kOps[] = {OpKind::kBarrier,   OpKind::kAllReduce, OpKind::kReduceScatter,
                           OpKind::kAllGather, OpKind::kBroadcast, OpKind::kReduce,
                           OpKind::kGather,    OpKind::kScatter,   OpKind::kAllToAll};
constexpr ReduceOp kReductions[] = {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin};
constexpr int64_t kCounts[] = {0, 1, 7, 100, 255, 257, 1000, 4097, 20000};

// Small whole numbers: sums of many ranks are exact in every dtype used here.
int64_t Input(uint64_t seed, uint64_t index, int rank, int64_t i) {
  return static_cast<int64_t>(
      (seed + 3 * index + 5 * static_cast<uint64_t>(rank) + 7 * static_cast<uint64_t>(i)) % 11);
}

template <typename T>
class TypedCall final : public PendingCall {
 public:
  TypedCall(Communicator& comm, const LegalCall& call, uint64_t seed, uint64_t index,
            const CallOptions& options)
      : comm_(comm),
        call_(call),
        seed_(seed),
        index_(index),
        size_(comm.size()),
        rank_(comm.rank()) {
    Fill();
    if (call_.op == OpKind::kSend && call_.shift == 0) {
      SendToAndFro(options);
    } else if (call_.async) {
      works_.push_back(Launch(options));
    } else {
      status_ = Perform(options);
    }
  }

  absl::Status Finish() override {
    // A call that ends has its own deadline; one that does not is what the test looks for.
    for (const std::unique_ptr<Work>& work : works_) {
      status_.Update(work->Wait(absl::InfiniteDuration()));
    }
    return status_.ok() ? Compare() : status_;
  }

 private:
  int64_t InCount() const {
    const bool whole = call_.op == OpKind::kReduceScatter || call_.op == OpKind::kAllToAll ||
                       call_.op == OpKind::kScatter;
    return whole ? call_.count * size_ : call_.count;
  }
  int64_t OutCount() const {
    const bool whole = call_.op == OpKind::kAllGather || call_.op == OpKind::kAllToAll ||
                       call_.op == OpKind::kGather;
    return whole ? call_.count * size_ : call_.count;
  }
  Buffer in() { return BufferOf(std::span<T>(in_)); }
  Buffer out() { return BufferOf(std::span<T>(out_)); }

  void Fill() {
    in_.resize(InCount());
    for (int64_t i = 0; i < InCount(); ++i) in_[i] = static_cast<T>(Of(rank_, i));
    out_.assign(OutCount(), static_cast<T>(99));
    if (call_.op == OpKind::kBroadcast) out_ = in_;
  }

  // The rank that `rank` sends to or, the other way, receives from; itself: none.
  int PeerOf(int rank, bool sends) const {
    if (call_.shift > 0) return (rank + (sends ? call_.shift : size_ - call_.shift)) % size_;
    return (rank ^ 1) < size_ ? rank ^ 1 : rank;
  }
  std::vector<SendTo> Sends() { return {{PeerOf(rank_, true), in()}}; }
  std::vector<ReceiveFrom> Receives() { return {{PeerOf(rank_, false), out()}}; }

  void SendToAndFro(const CallOptions& o) {
    const int peer = PeerOf(rank_, true);
    for (const bool sends : {rank_ % 2 == 0, rank_ % 2 != 0}) {
      if (peer == rank_) return;
      if (call_.async) {
        works_.push_back(sends ? comm_.SendAsync(in(), peer, o)
                               : comm_.ReceiveAsync(out(), peer, o));
      } else {
        status_.Update(sends ? comm_.Send(in(), peer, o) : comm_.Receive(out(), peer, o));
      }
    }
  }

  absl::Status Perform(const CallOptions& o) {
    switch (call_.op) {
      case OpKind::kAllReduce:
        return comm_.AllReduce(in(), out(), call_.reduce, o);
      case OpKind::kReduceScatter:
        return comm_.ReduceScatter(in(), out(), call_.reduce, o);
      case OpKind::kAllGather:
        return comm_.AllGather(in(), out(), o);
      case OpKind::kBroadcast:
        return comm_.Broadcast(out(), call_.root, o);
      case OpKind::kReduce:
        return comm_.Reduce(in(), out(), call_.root, call_.reduce, o);
      case OpKind::kGather:
        return comm_.Gather(in(), out(), call_.root, o);
      case OpKind::kScatter:
        return comm_.Scatter(in(), out(), call_.root, o);
      case OpKind::kAllToAll:
        return comm_.AllToAll(in(), out(), o);
      case OpKind::kSend:
        return comm_.Exchange(Sends(), Receives(), o);
      default:
        return comm_.Barrier(o);
    }
  }
  std::unique_ptr<Work> Launch(const CallOptions& o) {
    switch (call_.op) {
      case OpKind::kAllReduce:
        return comm_.AllReduceAsync(in(), out(), call_.reduce, o);
      case OpKind::kReduceScatter:
        return comm_.ReduceScatterAsync(in(), out(), call_.reduce, o);
      case OpKind::kAllGather:
        return comm_.AllGatherAsync(in(), out(), o);
      case OpKind::kBroadcast:
        return comm_.BroadcastAsync(out(), call_.root, o);
      case OpKind::kReduce:
        return comm_.ReduceAsync(in(), out(), call_.root, call_.reduce, o);
      case OpKind::kGather:
        return comm_.GatherAsync(in(), out(), call_.root, o);
      case OpKind::kScatter:
        return comm_.ScatterAsync(in(), out(), call_.root, o);
      case OpKind::kAllToAll:
        return comm_.AllToAllAsync(in(), out(), o);
      case OpKind::kSend:
        return comm_.ExchangeAsync(Sends(), Receives(), o);
      default:
        return comm_.BarrierAsync(o);
    }
  }

  int64_t Of(int rank, int64_t i) const { return Input(seed_, index_, rank, i); }
  int64_t Reduced(int64_t i) const {
    int64_t result = Of(0, i);
    for (int rank = 1; rank < size_; ++rank) {
      const int64_t next = Of(rank, i);
      result = call_.reduce == ReduceOp::kSum   ? result + next
               : call_.reduce == ReduceOp::kMax ? std::max(result, next)
                                                : std::min(result, next);
    }
    return result;
  }
  int64_t Expected(int64_t i) const {
    const int64_t count = std::max<int64_t>(1, call_.count);
    const int from = static_cast<int>(i / count);
    switch (call_.op) {
      case OpKind::kAllReduce:
      case OpKind::kReduce:
        return Reduced(i);
      case OpKind::kReduceScatter:
        return Reduced(rank_ * call_.count + i);
      case OpKind::kBroadcast:
        return Of(call_.root, i);
      case OpKind::kScatter:
        return Of(call_.root, rank_ * call_.count + i);
      case OpKind::kAllToAll:
        return Of(from, rank_ * call_.count + i % count);
      case OpKind::kSend:
        return Of(PeerOf(rank_, false), i);
      default:  // all_gather, gather
        return Of(from, i % count);
    }
  }

  absl::Status Compare() const {
    const bool only_root = call_.op == OpKind::kReduce || call_.op == OpKind::kGather;
    const bool alone =
        call_.op == OpKind::kSend && call_.shift == 0 && PeerOf(rank_, true) == rank_;
    if (call_.op == OpKind::kBarrier || alone || (only_root && rank_ != call_.root)) {
      return absl::OkStatus();
    }
    for (int64_t i = 0; i < OutCount(); ++i) {
      if (out_[i] == static_cast<T>(Expected(i))) continue;
      return absl::InternalError(
          absl::StrCat("program ", seed_, ", call ", index_, ", ", OpName(call_.op), " x ",
                       call_.count, ", rank ", rank_, " of ", size_, ": element ", i, " is ",
                       static_cast<double>(out_[i]), ", want ", Expected(i)));
    }
    return absl::OkStatus();
  }

  Communicator& comm_;
  const LegalCall call_;
  const uint64_t seed_, index_;
  const int size_, rank_;
  std::vector<T> in_, out_;
  std::vector<std::unique_ptr<Work>> works_;
  absl::Status status_;
};

}  // namespace

LegalCall CallOf(uint64_t seed, uint64_t index, int size) {
  uint64_t draw = 0;
  const uint64_t key = RngKey(seed, "legal program");
  const auto pick = [&](uint64_t end) { return RandomBits(key, index, draw++) % end; };
  constexpr DType kDTypes[] = {DType::kF32, DType::kF64, DType::kI32, DType::kI64};
  LegalCall call;
  call.op = kOps[pick(std::size(kOps))];
  call.reduce = kReductions[pick(std::size(kReductions))];
  call.dtype = kDTypes[pick(std::size(kDTypes))];
  call.count = kCounts[pick(std::size(kCounts))];
  call.root = static_cast<int>(pick(size));
  call.async = pick(3) == 0;
  return call;
}

LegalCall CallOrMessageOf(uint64_t seed, uint64_t index, int size) {
  LegalCall call = CallOf(seed, index, size);
  const uint64_t key = RngKey(seed, "message");
  if (RandomBits(key, index, 0) % 5 != 0) return call;
  call.op = OpKind::kSend;
  call.shift = static_cast<int>(RandomBits(key, index, 1) % size);
  return call;
}

std::unique_ptr<PendingCall> StartCall(Communicator& comm, const LegalCall& call, uint64_t seed,
                                       uint64_t index, absl::Duration timeout) {
  const CallOptions options(timeout, CallSite{"program.cc", static_cast<int>(index)});
  switch (call.dtype) {
    case DType::kF32:
      return std::make_unique<TypedCall<float>>(comm, call, seed, index, options);
    case DType::kF64:
      return std::make_unique<TypedCall<double>>(comm, call, seed, index, options);
    case DType::kI32:
      return std::make_unique<TypedCall<int32_t>>(comm, call, seed, index, options);
    default:
      CHECK_EQ(static_cast<int>(call.dtype), static_cast<int>(DType::kI64));
      return std::make_unique<TypedCall<int64_t>>(comm, call, seed, index, options);
  }
}

absl::Status MakeCall(Communicator& comm, const LegalCall& call, uint64_t seed, uint64_t index,
                      absl::Duration timeout) {
  return StartCall(comm, call, seed, index, timeout)->Finish();
}

}  // namespace plinth::comm::testing
