#include "plinth/comm/testing/faults.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "absl/time/clock.h"
#include "plinth/comm/transport/mem/connect.h"
#include "plinth/hardware/base/rng.h"

namespace plinth::comm::testing {
namespace {

// Cuts parts into pieces and interleaves the peers at random; pieces of one peer keep their order.
template <typename Part>
std::vector<Part> Shuffled(const std::vector<Part>& parts, uint64_t seed, uint64_t round) {
  uint64_t draw = 0;
  const auto next = [&](uint64_t end) { return RandomBits(seed, round, draw++) % end; };
  std::map<int, std::vector<Part>> by_peer;
  for (const Part& part : parts) {
    auto& pieces = by_peer[part.peer];
    int64_t done = 0;
    do {
      Part piece = part;
      const int64_t rest = part.bytes - done;
      piece.bytes = rest <= 1 ? rest : 1 + static_cast<int64_t>(next(rest));
      // An empty part may have no address.
      if (done > 0) {
        using Byte = std::conditional_t<std::is_same_v<Part, SendPart>, const std::byte, std::byte>;
        piece.data = static_cast<Byte*>(part.data) + done;
      }
      done += piece.bytes;
      pieces.push_back(piece);
    } while (done < part.bytes && pieces.size() < 8);
    if (done < part.bytes) pieces.back().bytes += part.bytes - done;
  }
  std::vector<Part> shuffled;
  std::map<int, size_t> taken;
  while (!by_peer.empty()) {
    auto entry = std::next(by_peer.begin(), static_cast<std::ptrdiff_t>(next(by_peer.size())));
    shuffled.push_back(entry->second[taken[entry->first]++]);
    if (taken[entry->first] == entry->second.size()) by_peer.erase(entry);
  }
  return shuffled;
}

}  // namespace

void FaultPlan::CutLink(int a, int b, uint64_t from_call) {
  DropTo(a, b, from_call);
  DropTo(b, a, from_call);
}
void FaultPlan::DropTo(int from, int to, uint64_t from_call) {
  faults_[from].push_back({Fault::Kind::kDropToPeer, from_call, to});
}
void FaultPlan::Delay(int from, int to, absl::Duration delay, uint64_t from_call) {
  faults_[from].push_back({Fault::Kind::kDelay, from_call, to, delay});
}
void FaultPlan::Reorder(int rank, uint64_t seed) {
  faults_[rank].push_back({.kind = Fault::Kind::kReorder, .seed = seed});
}
void FaultPlan::Vanish(int rank, uint64_t from_call) {
  faults_[rank].push_back({Fault::Kind::kVanish, from_call});
}
void FaultPlan::RepeatNote(int rank, uint64_t call) {
  faults_[rank].push_back({Fault::Kind::kStaleNote, call});
}

std::vector<Fault> FaultPlan::Of(int rank) const {
  const auto found = faults_.find(rank);
  return found == faults_.end() ? std::vector<Fault>() : found->second;
}

FaultyTransport::FaultyTransport(std::unique_ptr<Transport> beneath, std::vector<Fault> faults,
                                 Graveyard graveyard)
    : beneath_(std::move(beneath)), faults_(std::move(faults)), graveyard_(std::move(graveyard)) {}

FaultyTransport::~FaultyTransport() {
  // Told to nobody that it left.
  if (graveyard_ != nullptr && Active(Fault::Kind::kVanish) != nullptr) {
    (*graveyard_)[rank()] = std::move(beneath_);
  }
}

const Fault* FaultyTransport::Active(Fault::Kind kind, int peer) const {
  for (const Fault& fault : faults_) {
    if (fault.kind == kind && fault.from_call <= calls_ && (peer < 0 || fault.peer == peer)) {
      return &fault;
    }
  }
  return nullptr;
}

std::optional<PeerFailure> FaultyTransport::Exchange(std::span<const SendPart> sends,
                                                     std::span<const ReceivePart> receives,
                                                     absl::Time deadline) {
  if (Active(Fault::Kind::kVanish)) {
    return PeerFailure{PeerFailure::Kind::kGone, {rank()}, "vanished as planned"};
  }
  sends_.clear();
  late_.clear();
  receives_.assign(receives.begin(), receives.end());
  absl::Duration delay = absl::ZeroDuration();
  for (const SendPart& part : sends) {
    if (Active(Fault::Kind::kDropToPeer, part.peer)) continue;
    const Fault* late = Active(Fault::Kind::kDelay, part.peer);
    (late == nullptr ? sends_ : late_).push_back(part);
    if (late != nullptr) delay = std::max(delay, late->delay);
  }
  if (const Fault* reorder = Active(Fault::Kind::kReorder)) Shuffle(*reorder);
  // Peers send without waiting for this rank, so all can be received before the late part goes out.
  if (auto failure = beneath_->Exchange(sends_, receives_, deadline)) return failure;
  if (!late_.empty()) {
    absl::SleepFor(std::min(delay, deadline - absl::Now()));
    if (auto failure = beneath_->Exchange(late_, {}, deadline)) return failure;
  }
  CountBytes(sends, receives);
  return std::nullopt;
}

std::optional<PeerFailure> FaultyTransport::Announce(std::span<const std::byte> note,
                                                     std::vector<std::span<const std::byte>>& notes,
                                                     absl::Time deadline) {
  ++calls_;
  const Fault* stale = Active(Fault::Kind::kStaleNote);
  const bool repeats = stale != nullptr && stale->from_call == calls_;
  // By way of Exchange, where the other faults are.
  auto failure = Transport::Announce(repeats ? last_note_ : note, notes, deadline);
  last_note_.assign(note.begin(), note.end());
  return failure;
}

void FaultyTransport::Abort(std::string_view reason) {
  if (Active(Fault::Kind::kVanish) == nullptr) beneath_->Abort(reason);
}

void FaultyTransport::Shuffle(const Fault& fault) {
  ++shuffles_;
  sends_ = Shuffled(sends_, fault.seed, 2 * shuffles_);
  receives_ = Shuffled(receives_, fault.seed, 2 * shuffles_ + 1);
}

std::vector<std::unique_ptr<Transport>> ConnectMemWithFaults(int size, const FaultPlan& plan) {
  const auto graveyard = std::make_shared<std::vector<std::unique_ptr<Transport>>>(size);
  std::vector<std::unique_ptr<Transport>> ends = ConnectMem(size);
  for (int rank = 0; rank < size; ++rank) {
    ends[rank] = std::make_unique<FaultyTransport>(std::move(ends[rank]), plan.Of(rank), graveyard);
  }
  return ends;
}

}  // namespace plinth::comm::testing
