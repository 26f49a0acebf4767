// A transport that misbehaves as planned, over any other: what a library of collectives has to
// get right, or at least to name.
//
//   FaultPlan plan;
//   plan.CutLink(2, 5, /*from_call=*/17);
//   std::vector<std::unique_ptr<Transport>> ends = ConnectMemWithFaults(8, plan);
//
// Calls are counted by Announce, with which every collective begins, from 1.
#ifndef PLINTH_COMM_TESTING_FAULTS_H_
#define PLINTH_COMM_TESTING_FAULTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm::testing {

struct Fault {
  enum class Kind {
    kDropToPeer,  // nothing that is sent to `peer` arrives any more
    kDelay,       // what is sent to `peer` comes `delay` later
    kReorder,     // parts are handed over in a random order between peers, in random pieces
    kVanish,      // this end is gone from one moment to the next, without a word
    kStaleNote,   // the note of the call before is posted again, once
  };
  Kind kind;
  uint64_t from_call = 1;
  int peer = -1;
  absl::Duration delay = absl::ZeroDuration();
  uint64_t seed = 0;  // of kReorder
};

// What goes wrong on which rank.
class FaultPlan {
 public:
  void CutLink(int a, int b, uint64_t from_call);  // in both directions
  void DropTo(int from, int to, uint64_t from_call);
  void Delay(int from, int to, absl::Duration delay, uint64_t from_call = 1);
  void Reorder(int rank, uint64_t seed);
  void Vanish(int rank, uint64_t from_call);
  void RepeatNote(int rank, uint64_t call);

  std::vector<Fault> Of(int rank) const;

 private:
  std::map<int, std::vector<Fault>> faults_;
};

// Used like the transport beneath. It offers no shared memory, so that all data passes through
// it. After kVanish its exchanges fail with kGone and this rank, and the end beneath stays open,
// silent, as long as anyone holds the graveyard.
class FaultyTransport final : public Transport {
 public:
  using Graveyard = std::shared_ptr<std::vector<std::unique_ptr<Transport>>>;

  FaultyTransport(std::unique_ptr<Transport> beneath, std::vector<Fault> faults,
                  Graveyard graveyard = nullptr);
  ~FaultyTransport() override;

  int rank() const override { return beneath_->rank(); }
  int size() const override { return beneath_->size(); }
  std::string_view name() const override { return beneath_->name(); }
  std::optional<PeerFailure> Exchange(std::span<const SendPart> sends,
                                      std::span<const ReceivePart> receives,
                                      absl::Time deadline) override;
  std::optional<PeerFailure> Announce(std::span<const std::byte> note,
                                      std::vector<std::span<const std::byte>>& notes,
                                      absl::Time deadline) override;
  void Abort(std::string_view reason) override;

 private:
  // The first fault of the kind that holds now, for `peer` if it is given.
  const Fault* Active(Fault::Kind kind, int peer = -1) const;
  void Shuffle(const Fault& fault);

  std::unique_ptr<Transport> beneath_;
  const std::vector<Fault> faults_;
  const Graveyard graveyard_;
  uint64_t calls_ = 0;
  uint64_t shuffles_ = 0;
  std::vector<std::byte> last_note_;
  std::vector<SendPart> sends_, late_;
  std::vector<ReceivePart> receives_;
};

// ConnectMem, each end under the plan. Ends that vanish are silent until all ends are destroyed.
std::vector<std::unique_ptr<Transport>> ConnectMemWithFaults(int size, const FaultPlan& plan);

}  // namespace plinth::comm::testing

#endif  // PLINTH_COMM_TESTING_FAULTS_H_
