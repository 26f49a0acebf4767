// Collectives without messages, between ranks that share memory.
//
// Four ways, chosen alike on all ranks:
//   early    small inputs: copied to where the peers see them before the ranks meet, and taken
//            from there right after. The meeting is the only wait
//   in place all buffers are registered memory of one region: ranks read each other's inputs, and
//            write each other's outputs, where they lie. One more wait, at the end
//   by reading  not for reductions, where the system lets ranks read each other's memory: the
//            kernel copies from inputs wherever they lie. One more wait too
//   staged   anything else: inputs go through staging areas in pieces that caches hold, one piece
//            being written while the last is read
// Elements are reduced in rank order, whichever way: results are equal bit for bit.
#ifndef PLINTH_COMM_DIRECT_DIRECT_H_
#define PLINTH_COMM_DIRECT_DIRECT_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "plinth/comm/call/call.h"
#include "plinth/comm/direct/geometry.h"
#include "plinth/comm/direct/handle.h"
#include "plinth/comm/direct/stream.h"
#include "plinth/comm/transport/shared_space.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

class DirectBackend final : public Backend {
 public:
  // Equal on all ranks.
  struct Limits {
    int64_t early_bytes = int64_t{16} << 10;   // most input to go early
    int64_t unread_bytes = int64_t{8} << 10;   // most of a stretch to go early rather than be read
    int64_t paired_bytes = int64_t{8} << 20;   // least broadcast that two ranks work on at once
    int64_t piece_bytes = int64_t{128} << 10;  // most of one input that is staged at a time
    int64_t memory_bytes = int64_t{32} << 20;  // least output to be stored past the caches
    bool in_place = true;                      // use registered memory where it lies
    bool reads_peers = true;                   // read private memory where it lies
  };

  // `transport` has a shared space and outlives this.
  explicit DirectBackend(Transport* transport) : DirectBackend(transport, Limits()) {}
  DirectBackend(Transport* transport, Limits limits);

  std::string_view name() const override { return "direct"; }
  bool Takes(const CollectiveCall& call) const override;
  // Also copies a small input to its staging area. Called before the ranks meet, in every call
  // that Run may follow, by every rank that has input; where inputs differ in size, also left out
  // by some.
  size_t Describe(const CollectiveCall& call, std::span<std::byte> to) override;
  absl::Status Run(const CollectiveCall& call, absl::Time deadline) override;
  void Abort() override {}  // Abort of the transport ends the waits

 private:
  // What the ranks count up, each for the others to wait for.
  enum CounterName { kStaged = 0, kReduced = 1, kTaken = 2, kDone = 3 };

  using Failure = std::optional<PeerFailure>;

  bool GoesEarly(const CollectiveCall& call) const;
  bool GoesInPlace(const CollectiveCall& call) const;
  bool ReadsPeers(const CollectiveCall& call) const;
  bool OverwritesInputs() const;
  void ReadHandles(const CollectiveCall& call);
  Failure Move(const CollectiveCall& call, absl::Time deadline);
  void TakeEarly(const CollectiveCall& call);
  Failure TakeInPlace(const CollectiveCall& call, absl::Time deadline);
  Failure ReduceInPlace(const CollectiveCall& call, absl::Time deadline);
  // Lets the others know that this rank has what it takes of them, and waits for those that take
  // of its input, which is the caller's again when the call returns.
  Failure Done(absl::Time deadline);
  Failure TakeByReading(const CollectiveCall& call, absl::Time deadline);
  Failure TakeStaged(const CollectiveCall& call, absl::Time deadline);
  Failure ReduceStaged(const CollectiveCall& call, absl::Time deadline);

  // A reduction in pieces, of which each rank reduces its share. Every slot holds a piece and,
  // behind it, a result.
  struct ReduceJob {
    int64_t piece;  // bytes
    int64_t bytes;  // of the whole vector
    bool gets;      // whether this rank gets the result
    // Of the counters, when the call began.
    uint64_t staged;
    uint64_t reduced;
    uint64_t taken;
    absl::Time deadline;

    int64_t Begin(uint64_t k) const { return static_cast<int64_t>(k) * piece; }
    int64_t Bytes(uint64_t k) const { return std::min(piece, bytes - Begin(k)); }
    int64_t result_at() const { return piece; }
  };
  // Of piece `k`: shows the others their shares of this rank's input; reduces this rank's share;
  // takes the shares that the others reduced.
  Failure StageForReduce(const CollectiveCall& call, const ReduceJob& job, uint64_t k);
  Failure ReduceShare(const CollectiveCall& call, const ReduceJob& job, uint64_t k);
  Failure TakeShares(const CollectiveCall& call, const ReduceJob& job, uint64_t k);
  // Until all ranks have counted that far.
  Failure AwaitAll(CounterName counter, uint64_t value, absl::Time deadline);

  // Takes bytes [begin, begin + bytes) of every stretch, which lie at sources_, to the output.
  void TakePiece(const CollectiveCall& call, int64_t begin, int64_t bytes, StoreTo store);
  // Puts the same bytes of what the others take of this rank's input into `slot`, by taker or
  // once for all.
  void StagePiece(const CollectiveCall& call, std::byte* slot, int64_t begin, int64_t bytes);

  std::byte* Early(int rank, uint64_t sequence) const;
  std::byte* Slot(int rank, uint64_t piece) const;
  StoreTo StoreFor(const CollectiveCall& call) const;

  SharedSpace& space_;
  const int rank_;
  const int size_;
  const Limits limits_;
  const int64_t early_area_bytes_;
  const int64_t slot_bytes_;
  std::array<uint64_t, SharedSpace::kCounters> counted_{};
  // Of the call that runs; reused.
  Geometry geometry_;
  std::vector<DirectHandles> handles_;
  std::vector<bool> described_;  // whether a rank gave handles
  std::vector<const void*> sources_;
  std::vector<std::byte*> targets_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_DIRECT_DIRECT_H_
