// Sends and receives between two ranks, alone or many at once.
#ifndef PLINTH_COMM_ENGINE_PAIRS_H_
#define PLINTH_COMM_ENGINE_PAIRS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "plinth/comm/call/buffer.h"
#include "plinth/comm/call/call.h"
#include "plinth/comm/call/group.h"
#include "plinth/comm/engine/note.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

struct SendTo {
  int peer;
  ConstBuffer buffer;
};
struct ReceiveFrom {
  int peer;
  Buffer buffer;
};

// What one rank sends and receives at once.
struct PairCalls {
  std::vector<CollectiveCall> calls;  // kSend with `in` or kReceive with `out`; the peer is `root`
  std::vector<uint64_t> observed;     // by call: what the engine's Observe returned
  absl::Duration timeout = absl::ZeroDuration();
};

// First the two ranks of each pair show each other what they are about to do; only when it
// matches does data move. Sends to this rank itself are copies.
class PairRunner {
 public:
  struct Outcome {
    std::optional<PeerFailure> failure;
    size_t call = 0;  // of `failure`: the one to name
    bool arriving = false;
    std::string mismatch;  // the same text on both ranks
  };

  // `heads`, by rank, take the heads of the peers.
  PairRunner(Transport* transport, const GroupInfo* group, std::vector<NoteHead>* heads);

  // Numbers the calls of each pair, then finds agreement with the peers.
  void Number(PairCalls& calls);
  Outcome Agree(const PairCalls& calls, absl::Time deadline);
  Outcome Move(const PairCalls& calls, absl::Time deadline);

  // One line about a rank that greets this one, which is at an operation of the whole group;
  // `failure` is kElsewhere. That rank says the same.
  std::string DescribeGreeter(const PeerFailure& failure, const NoteHead& own) const;

 private:
  // By what two ranks greet each other; followed by a fingerprint for each call when there are
  // several. Plain bytes on the wire: no padding.
  struct PairNote {
    NoteHead head;
    int32_t sends = 0;  // of the one who greets to the other
    int32_t receives = 0;
  };
  static_assert(sizeof(PairNote) == 72 && sizeof(PairNote) <= kMostGreetingBytes);
  struct Peer {
    int rank = 0;
    size_t first_call = 0;
    PairNote own;
    PairNote theirs;
    std::vector<Fingerprint> own_prints;  // sends, then receives
    std::vector<Fingerprint> their_prints;
  };

  Peer& PeerOf(int rank, size_t call);
  Outcome Failed(PeerFailure failure, bool arriving) const;
  // Takes what the peers showed. Returns what is wrong with it.
  Outcome ReadGreetings();
  std::string CompareNotes(const Peer& peer) const;
  std::string ComparePrints(const Peer& peer) const;
  std::string Tell(int rank, const PairNote& note, int other) const;
  std::string TellCrossing(int pair_rank, const PairNote& note, int group_rank,
                           const NoteHead& head) const;

  Transport& transport_;
  const GroupInfo& group_;
  std::vector<NoteHead>& heads_;
  std::vector<uint64_t> sequences_;  // by peer: of calls between it and this rank
  // Reused between calls.
  std::vector<Peer> peers_;
  std::vector<Greeting> greetings_;  // by peer
  std::vector<SendPart> sends_;
  std::vector<ReceivePart> receives_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_ENGINE_PAIRS_H_
