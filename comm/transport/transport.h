// How bytes move between the ranks of one group; collectives are built on it.
//
// Back-ends are folders with equal file names: mem (threads of one process), shm (processes of
// one host), tcp (any hosts). Each offers a function that connects a group.
#ifndef PLINTH_COMM_TRANSPORT_TRANSPORT_H_
#define PLINTH_COMM_TRANSPORT_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace plinth::comm {

struct SendPart {
  int peer;
  const void* data;
  int64_t bytes;
};
struct ReceivePart {
  int peer;
  void* data;
  int64_t bytes;
};

// Why an exchange did not complete, and through whom.
struct PeerFailure {
  enum class Kind {
    kLate,     // alive as far as one can tell, but its part did not come before the deadline
    kGone,     // its process ended or its connection broke; `detail` tells when it is its host
    kLeft,     // it destroyed its transport
    kAborted,  // it called Abort; `detail` is the reason it gave
    // It announces where this rank greets it, or the other way round; `detail` has the bytes of
    // its note, kMostGreetingBytes at most.
    kElsewhere,
  };
  Kind kind;
  std::vector<int> ranks;  // ascending, at least one
  std::string detail;
};

// Bytes of parts that exchanges have moved from and to a rank.
struct ByteCounts {
  int64_t sent = 0;
  int64_t received = 0;

  bool operator==(const ByteCounts&) const = default;
};

// What two ranks show each other.
struct Greeting {
  int peer = 0;
  std::span<const std::byte> own;     // at most kMostGreetingBytes
  std::span<const std::byte> theirs;  // set by Greet; stays until the next use of the transport
};

class SharedSpace;  // shared_space.h

// One rank's end of a group. Bytes from one rank to another arrive in the order sent, so a
// receive takes whatever its peer sent next. Destroying it tells the peers that this rank left;
// what it had sent completely can still be received. Used by one thread at a time, except
// Abort. After a failure only FindFailure, Abort and destruction are allowed.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string_view name() const = 0;  // "mem", "shm", "tcp"
  // What it chose for itself and why, in a line for people; empty when there was no choice.
  virtual std::string Explain() const { return ""; }

  // Moves all parts at once, in any order between peers and in list order for one peer, so no
  // order of calls between ranks can deadlock as long as what is sent is also received. Returns
  // when every receive is complete and every send buffer may be reused. `peer` is never this
  // rank. An open receive makes its peer guilty; a peer that only does not drain is guilty
  // when there is none.
  virtual std::optional<PeerFailure> Exchange(std::span<const SendPart> sends,
                                              std::span<const ReceivePart> receives,
                                              absl::Time deadline) = 0;

  // Posts `note` (at most kMostNoteBytes, of any size) for every rank to see and waits for the
  // note of every rank: how ranks meet at a call and how small data travels. notes[r] is rank r's,
  // this rank's own included, and stays until the next use of the transport. A rank that has not
  // posted is guilty. Announces and exchanges come in the same order on all ranks.
  // An abort that is known goes before notes that are all there, as the others may have given up
  // on this rank. On one host it is known by then; one that is still under way between hosts is
  // met by the next use.
  // Here over Exchange; a transport that knows a shorter way overrides it.
  virtual std::optional<PeerFailure> Announce(std::span<const std::byte> note,
                                              std::vector<std::span<const std::byte>>& notes,
                                              absl::Time deadline);

  // The same in pairs, with some of the other ranks, each of which greets this one: posts a note
  // for each and waits for theirs. A rank that announces while this one greets it, or greets while
  // this one announces, can never be met: both learn so at once, with kElsewhere.
  // Here over Exchange; a transport that knows a shorter way overrides it.
  virtual std::optional<PeerFailure> Greet(std::span<Greeting> greetings, absl::Time deadline);

  // An abort, a rank that is gone or has left, as far as is known without waiting; for ranks that
  // work together by other means than exchanges, as on GPUs. A rank that left may have done its
  // part before. Nothing from a transport that does not look.
  virtual std::optional<PeerFailure> FindFailure() { return std::nullopt; }

  // Makes the exchanges that others wait in fail with kAborted and `reason` (cut after 1000
  // bytes). The first call counts. Thread-safe, does not block.
  virtual void Abort(std::string_view reason) = 0;

  // Memory that all ranks address; null when the ranks have none in common.
  virtual SharedSpace* shared() { return nullptr; }

  // By completed exchanges, since the transport was made.
  const ByteCounts& bytes_moved() const { return bytes_moved_; }

 protected:
  // For Exchange: all its parts are through.
  void CountBytes(std::span<const SendPart> sends, std::span<const ReceivePart> receives) {
    for (const SendPart& part : sends) bytes_moved_.sent += part.bytes;
    for (const ReceivePart& part : receives) bytes_moved_.received += part.bytes;
  }

 private:
  ByteCounts bytes_moved_;
  std::vector<std::byte> note_frames_;   // of the last Announce, by rank
  std::vector<std::byte> greet_frames_;  // of the last Greet: own, then theirs, by greeting
};

inline constexpr size_t kMostNoteBytes = 2048;
inline constexpr size_t kMostGreetingBytes = 124;

inline constexpr size_t kMaxAbortReasonBytes = 1000;

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_TRANSPORT_H_
