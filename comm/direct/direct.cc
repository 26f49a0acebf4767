#include "plinth/comm/direct/direct.h"

#include <algorithm>
#include <cstring>

#include "plinth/comm/call/verdict.h"
#include "plinth/comm/program/problem.h"
#include "plinth/hardware/base/check.h"

namespace plinth::comm {
namespace {

constexpr int64_t kLineBytes = 64;

int64_t LinesDown(int64_t bytes) { return bytes / kLineBytes * kLineBytes; }
int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

const std::byte* In(const CollectiveCall& call) {
  return static_cast<const std::byte*>(call.in.data);
}
std::byte* Out(const CollectiveCall& call) { return static_cast<std::byte*>(call.out.data); }

bool ReducesWhole(OpKind op) { return op == OpKind::kAllReduce || op == OpKind::kReduce; }

}  // namespace

DirectBackend::DirectBackend(Transport* transport, Limits limits)
    : space_(*transport->shared()),
      rank_(transport->rank()),
      size_(transport->size()),
      limits_(limits),
      early_area_bytes_(LinesDown(space_.staging_bytes() / 8)),
      slot_bytes_(LinesDown(space_.staging_bytes() / 2 - early_area_bytes_)),
      handles_(size_),
      described_(size_),
      sources_(size_) {
  CHECK_LE(limits.early_bytes, early_area_bytes_);
  CHECK_EQ(limits.piece_bytes % kLineBytes, 0);
}

bool DirectBackend::Takes(const CollectiveCall& call) const {
  switch (call.print.op) {
    case OpKind::kBarrier:
    case OpKind::kSend:
    case OpKind::kReceive:
    case OpKind::kSplit:
    case OpKind::kAllocate:
      return false;
    default:
      // A line of a slot for each rank and for a result.
      return slot_bytes_ >= (size_ + 1) * kLineBytes;
  }
}

bool DirectBackend::GoesEarly(const CollectiveCall& call) const {
  const int64_t most = MostInputBytes(call, size_);
  if (most < 0) return false;
  if (IsReduction(call.print.op) || !limits_.reads_peers || !space_.reads_peers()) {
    return most <= limits_.early_bytes;
  }
  return most <= early_area_bytes_ && LongestBytes(call, size_) <= limits_.unread_bytes;
}

size_t DirectBackend::Describe(const CollectiveCall& call, std::span<std::byte> to) {
  if (GoesEarly(call)) {
    const bool gives = call.print.root < 0 || call.print.root == rank_ ||
                       call.print.op == OpKind::kReduce || call.print.op == OpKind::kGather;
    if (gives) {
      Copy(In(call), call.in.bytes(), Early(rank_, call.print.sequence), StoreTo::kCache);
    }
    return 0;
  }
  DirectHandles handles;
  if (limits_.in_place) {
    handles.in = space_.PlaceOf(call.in.data, call.in.bytes());
    handles.out = space_.PlaceOf(call.out.data, call.out.bytes());
  }
  handles.in_address = reinterpret_cast<uintptr_t>(call.in.data);
  handles.out_address = reinterpret_cast<uintptr_t>(call.out.data);
  CHECK_LE(sizeof(handles), to.size());
  std::memcpy(to.data(), &handles, sizeof(handles));
  return sizeof(handles);
}

void DirectBackend::ReadHandles(const CollectiveCall& call) {
  for (int rank = 0; rank < size_; ++rank) {
    handles_[rank] = {};
    described_[rank] = false;
    if (call.descriptions.empty()) continue;
    const std::span<const std::byte> text = call.descriptions[rank];
    if (text.size() == sizeof(DirectHandles)) {
      std::memcpy(&handles_[rank], text.data(), sizeof(DirectHandles));
      described_[rank] = true;
    }
  }
}

// Where a rank's input is its output, others would read what it has overwritten. For operations
// in which each takes something else.
bool DirectBackend::OverwritesInputs() const {
  return std::any_of(handles_.begin(), handles_.end(),
                     [](const DirectHandles& h) { return h.in_address == h.out_address; });
}

// Reductions would have to read into a buffer first, which is as much as staging.
bool DirectBackend::ReadsPeers(const CollectiveCall& call) const {
  if (!limits_.reads_peers || !space_.reads_peers() || geometry_.combines) return false;
  const OpKind op = call.print.op;
  // One of two would do all the work, where staging keeps both busy.
  if (op == OpKind::kBroadcast && size_ == 2 && geometry_.longest >= limits_.paired_bytes) {
    return false;
  }
  // A rank whose data fitted its note gave no handles, though others may need them.
  const bool known = op == OpKind::kBroadcast || op == OpKind::kScatter
                         ? described_[call.print.root]
                         : std::count(described_.begin(), described_.end(), false) == 0;
  if (!known) return false;
  return (op != OpKind::kAllToAll && op != OpKind::kAllToAllV) || !OverwritesInputs();
}

// A rank shows that it holds a region by a buffer of its own in it. So whoever reads or writes
// the buffers of others must have one in the same region.
bool DirectBackend::GoesInPlace(const CollectiveCall& call) const {
  const auto all_in = [this](auto member, uint64_t region) {
    return region != 0 && std::all_of(handles_.begin(), handles_.end(), [&](const auto& handles) {
             return (handles.*member).region == region;
           });
  };
  const auto in = &DirectHandles::in;
  const auto out = &DirectHandles::out;
  const uint64_t in_region = handles_[0].in.region;
  const uint64_t out_region = handles_[0].out.region;
  switch (call.print.op) {
    case OpKind::kAllReduce:
      return all_in(in, in_region) && all_in(out, out_region);
    case OpKind::kReduce:
      return all_in(in, in_region) && handles_[call.print.root].out.region == in_region;
    case OpKind::kBroadcast:
    case OpKind::kScatter:
      return all_in(out, out_region) && handles_[call.print.root].in.region == out_region;
    case OpKind::kAllToAll:
    case OpKind::kAllToAllV:
      return all_in(in, in_region) && !OverwritesInputs();
    default:
      return all_in(in, in_region);
  }
}

absl::Status DirectBackend::Run(const CollectiveCall& call, absl::Time deadline) {
  const Failure failure = Move(call, deadline);
  if (!failure.has_value()) return absl::OkStatus();
  return Verdict(*failure, call.print, false, call.timeout, call.group);
}

DirectBackend::Failure DirectBackend::Move(const CollectiveCall& call, absl::Time deadline) {
  FillGeometry(call, rank_, size_, geometry_);
  if (geometry_.longest == 0) return std::nullopt;
  if (GoesEarly(call)) {
    TakeEarly(call);
    return std::nullopt;
  }
  ReadHandles(call);
  const bool whole = ReducesWhole(call.print.op);
  if (GoesInPlace(call)) return whole ? ReduceInPlace(call, deadline) : TakeInPlace(call, deadline);
  if (ReadsPeers(call)) return TakeByReading(call, deadline);
  // Two ranks have as much to do when each reduces everything for itself, and wait less.
  return whole && size_ > 2 ? ReduceStaged(call, deadline) : TakeStaged(call, deadline);
}

void DirectBackend::TakeEarly(const CollectiveCall& call) {
  for (int rank = 0; rank < size_; ++rank) {
    const std::byte* input = rank == rank_ ? In(call) : Early(rank, call.print.sequence);
    sources_[rank] = input + geometry_.takes[rank].from;
  }
  TakePiece(call, 0, geometry_.longest, StoreTo::kCache);
}

DirectBackend::Failure DirectBackend::TakeInPlace(const CollectiveCall& call, absl::Time deadline) {
  for (int rank = 0; rank < size_; ++rank) {
    const std::byte* input = rank == rank_ ? In(call) : space_.AddressOf(rank, handles_[rank].in);
    sources_[rank] = input + geometry_.takes[rank].from;
  }
  const StoreTo store = StoreFor(call);
  TakePiece(call, 0, geometry_.longest, store);
  FinishStores(store);
  return Done(deadline);
}

DirectBackend::Failure DirectBackend::Done(absl::Time deadline) {
  const uint64_t value = ++counted_[kDone];
  int takers = 0;
  int last = 0;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_ || geometry_.gives[rank].bytes == 0) continue;
    ++takers;
    last = rank;
  }
  if (takers > 1) return space_.Meet(kDone, value, deadline);
  space_.Signal(kDone, value);
  return takers == 0 ? std::nullopt : space_.Await(kDone, value, last, deadline);
}

DirectBackend::Failure DirectBackend::TakeByReading(const CollectiveCall& call,
                                                    absl::Time deadline) {
  for (int i = 0; i < size_; ++i) {
    const int rank = (rank_ + i) % size_;  // not all from the same one
    const Take& take = geometry_.takes[rank];
    if (take.bytes == 0) continue;
    std::byte* to = Out(call) + take.to;
    if (rank == rank_) {
      Copy(In(call) + take.from, take.bytes, to, StoreTo::kCache);
    } else if (Failure f =
                   space_.ReadPeer(rank, handles_[rank].in_address + take.from, take.bytes, to)) {
      return f;
    }
  }
  return Done(deadline);
}

DirectBackend::Failure DirectBackend::ReduceInPlace(const CollectiveCall& call,
                                                    absl::Time deadline) {
  const Share share = ShareOf(geometry_.longest, rank_, size_);
  const bool all = call.print.op == OpKind::kAllReduce;
  targets_.clear();
  for (int rank = 0; rank < size_; ++rank) {
    sources_[rank] = space_.AddressOf(rank, handles_[rank].in) + share.begin;
    if (all || rank == call.print.root) {
      targets_.push_back(space_.AddressOf(rank, handles_[rank].out) + share.begin);
    }
  }
  const StoreTo store = StoreFor(call);
  ReduceTo(call.print.reduce, call.print.dtype, sources_, share.bytes, targets_, store);
  FinishStores(store);
  return space_.Meet(kDone, ++counted_[kDone], deadline);
}

DirectBackend::Failure DirectBackend::TakeStaged(const CollectiveCall& call, absl::Time deadline) {
  const int64_t room = geometry_.same_for_all ? slot_bytes_ : LinesDown(slot_bytes_ / size_);
  const int64_t piece = std::min(room, limits_.piece_bytes);
  const auto pieces = static_cast<uint64_t>(DivideUp(geometry_.longest, piece));
  const uint64_t staged = counted_[kStaged];
  const uint64_t taken = counted_[kTaken];
  const bool gives = std::any_of(geometry_.gives.begin(), geometry_.gives.end(),
                                 [](const Take& give) { return give.bytes > 0; });
  const auto stage = [&](uint64_t k) -> Failure {
    if (gives && k >= 2) {
      if (Failure f = AwaitAll(kTaken, taken + k - 1, deadline)) return f;
    }
    if (gives) StagePiece(call, Slot(rank_, k), k * piece, piece);
    space_.Signal(kStaged, staged + k + 1);
    return std::nullopt;
  };
  const StoreTo store = StoreFor(call);
  if (Failure f = stage(0)) return f;
  for (uint64_t k = 0; k < pieces; ++k) {
    if (k + 1 < pieces) {
      if (Failure f = stage(k + 1)) return f;
    }
    if (Failure f = AwaitAll(kStaged, staged + k + 1, deadline)) return f;
    for (int rank = 0; rank < size_; ++rank) {
      sources_[rank] = rank == rank_ ? In(call) + geometry_.takes[rank].from + k * piece
                                     : Slot(rank, k) + (geometry_.same_for_all ? 0 : rank_ * piece);
    }
    TakePiece(call, k * piece, piece, store);
    space_.Signal(kTaken, taken + k + 1);
  }
  counted_[kStaged] += pieces;
  counted_[kTaken] += pieces;
  return std::nullopt;
}

DirectBackend::Failure DirectBackend::AwaitAll(CounterName counter, uint64_t value,
                                               absl::Time deadline) {
  return space_.Await(counter, value, SharedSpace::kEveryRank, deadline);
}

DirectBackend::Failure DirectBackend::StageForReduce(const CollectiveCall& call,
                                                     const ReduceJob& job, uint64_t k) {
  if (k >= 2) {
    if (Failure f = AwaitAll(kReduced, job.reduced + k - 1, job.deadline)) return f;
  }
  const Share own = ShareOf(job.Bytes(k), rank_, size_);
  const int64_t end = own.begin + own.bytes;
  const std::byte* from = In(call) + job.Begin(k);
  Copy(from, own.begin, Slot(rank_, k), StoreTo::kCache);
  Copy(from + end, job.Bytes(k) - end, Slot(rank_, k) + end, StoreTo::kCache);
  space_.Signal(kStaged, job.staged + k + 1);
  return std::nullopt;
}

DirectBackend::Failure DirectBackend::ReduceShare(const CollectiveCall& call, const ReduceJob& job,
                                                  uint64_t k) {
  if (Failure f = AwaitAll(kStaged, job.staged + k + 1, job.deadline)) return f;
  if (k >= 2) {
    if (Failure f = AwaitAll(kTaken, job.taken + k - 1, job.deadline)) return f;
  }
  const Share own = ShareOf(job.Bytes(k), rank_, size_);
  for (int rank = 0; rank < size_; ++rank) {
    sources_[rank] = (rank == rank_ ? In(call) + job.Begin(k) : Slot(rank, k)) + own.begin;
  }
  targets_.clear();
  if (job.gets) targets_.push_back(Out(call) + job.Begin(k) + own.begin);
  if (!job.gets || call.print.op == OpKind::kAllReduce) {
    targets_.push_back(Slot(rank_, k) + job.result_at());
  }
  ReduceTo(call.print.reduce, call.print.dtype, sources_, own.bytes, targets_, StoreTo::kCache);
  space_.Signal(kReduced, job.reduced + k + 1);
  return std::nullopt;
}

DirectBackend::Failure DirectBackend::TakeShares(const CollectiveCall& call, const ReduceJob& job,
                                                 uint64_t k) {
  if (job.gets) {
    if (Failure f = AwaitAll(kReduced, job.reduced + k + 1, job.deadline)) return f;
  }
  for (int rank = 0; job.gets && rank < size_; ++rank) {
    if (rank == rank_) continue;
    const Share share = ShareOf(job.Bytes(k), rank, size_);
    Copy(Slot(rank, k) + job.result_at(), share.bytes, Out(call) + job.Begin(k) + share.begin,
         StoreTo::kCache);
  }
  space_.Signal(kTaken, job.taken + k + 1);
  return std::nullopt;
}

// While the others reduce their shares of a piece, this rank stages the next.
DirectBackend::Failure DirectBackend::ReduceStaged(const CollectiveCall& call,
                                                   absl::Time deadline) {
  const int64_t room = LinesDown(slot_bytes_ / (size_ + 1));
  const ReduceJob job{.piece = std::min(room, limits_.piece_bytes) * size_,
                      .bytes = geometry_.longest,
                      .gets = call.print.op == OpKind::kAllReduce || call.print.root == rank_,
                      .staged = counted_[kStaged],
                      .reduced = counted_[kReduced],
                      .taken = counted_[kTaken],
                      .deadline = deadline};
  const auto pieces = static_cast<uint64_t>(DivideUp(job.bytes, job.piece));
  if (Failure f = StageForReduce(call, job, 0)) return f;
  for (uint64_t k = 0; k < pieces; ++k) {
    if (Failure f = ReduceShare(call, job, k)) return f;
    if (k + 1 < pieces) {
      if (Failure f = StageForReduce(call, job, k + 1)) return f;
    }
    if (Failure f = TakeShares(call, job, k)) return f;
  }
  counted_[kStaged] += pieces;
  counted_[kReduced] += pieces;
  counted_[kTaken] += pieces;
  return std::nullopt;
}

void DirectBackend::TakePiece(const CollectiveCall& call, int64_t begin, int64_t bytes,
                              StoreTo store) {
  if (geometry_.combines) {
    const int64_t now = std::min(bytes, geometry_.takes[rank_].bytes - begin);
    if (now <= 0) return;
    std::byte* target = Out(call) + geometry_.takes[rank_].to + begin;
    ReduceTo(call.print.reduce, call.print.dtype, sources_, now, {&target, 1}, store);
    return;
  }
  for (int rank = 0; rank < size_; ++rank) {
    const Take& take = geometry_.takes[rank];
    const int64_t now = std::min(bytes, take.bytes - begin);
    if (now <= 0) continue;
    Copy(static_cast<const std::byte*>(sources_[rank]), now, Out(call) + take.to + begin, store);
  }
}

void DirectBackend::StagePiece(const CollectiveCall& call, std::byte* slot, int64_t begin,
                               int64_t bytes) {
  for (int taker = 0; taker < size_; ++taker) {
    const Take& give = geometry_.gives[taker];
    const int64_t now = std::min(bytes, give.bytes - begin);
    if (taker == rank_ || now <= 0) continue;
    Copy(In(call) + give.from + begin, now, slot + (geometry_.same_for_all ? 0 : taker * bytes),
         StoreTo::kCache);
    if (geometry_.same_for_all) return;
  }
}

// Two areas in turn: a rank meets the others in every call, so when it comes to the next but one
// they have all done with the first.
std::byte* DirectBackend::Early(int rank, uint64_t sequence) const {
  return space_.staging(rank) + static_cast<int64_t>(sequence % 2) * early_area_bytes_;
}

// Free at the start of a call: the ranks have met since the last one.
std::byte* DirectBackend::Slot(int rank, uint64_t piece) const {
  return space_.staging(rank) + 2 * early_area_bytes_ +
         static_cast<int64_t>(piece % 2) * slot_bytes_;
}

// What was just read is in a cache: to write it there costs nothing more.
StoreTo DirectBackend::StoreFor(const CollectiveCall& call) const {
  const bool in_place = call.in.data == call.out.data;
  return !in_place && call.out.bytes() >= limits_.memory_bytes ? StoreTo::kMemory : StoreTo::kCache;
}

}  // namespace plinth::comm
