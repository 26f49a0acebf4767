// How bytes move between the ranks of one group; collectives are built on it.
//
// Back-ends are folders with equal file names: mem (threads of one process), shm (processes of
// one host), tcp (any hosts). Each offers a function that connects a group.
#ifndef PLINTH_COMM_TRANSPORT_TRANSPORT_H_
#define PLINTH_COMM_TRANSPORT_TRANSPORT_H_

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
    kGone,     // its process ended or its connection broke
    kLeft,     // it destroyed its transport
    kAborted,  // it called Abort; `detail` is the reason it gave
  };
  Kind kind;
  std::vector<int> ranks;  // ascending, at least one
  std::string detail;
};

// One rank's end of a group. Bytes from one rank to another arrive in the order sent, so a
// receive takes whatever its peer sent next. Destroying it tells the peers that this rank left;
// what it had sent completely can still be received. Used by one thread at a time, except
// Abort. After a failure only Abort and destruction are allowed.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string_view name() const = 0;  // "mem", "shm", "tcp"

  // Moves all parts at once, in any order between peers and in list order for one peer, so no
  // order of calls between ranks can deadlock as long as what is sent is also received. Returns
  // when every receive is complete and every send buffer may be reused. `peer` is never this
  // rank. An open receive makes its peer guilty; a peer that only does not drain is guilty
  // when there is none.
  virtual std::optional<PeerFailure> Exchange(std::span<const SendPart> sends,
                                              std::span<const ReceivePart> receives,
                                              absl::Time deadline) = 0;

  // Makes the exchanges that others wait in fail with kAborted and `reason` (cut after 1000
  // bytes). The first call counts. Thread-safe, does not block.
  virtual void Abort(std::string_view reason) = 0;
};

inline constexpr size_t kMaxAbortReasonBytes = 1000;

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_TRANSPORT_H_
