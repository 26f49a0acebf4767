// Runs collectives over a transport, one after the other.
//
// Every call begins with an exchange of fingerprints between all ranks; only when they agree
// does data move. Then each rank talks to each other rank directly:
//   all_reduce      rank r reduces the r-th share of every piece and returns it to all:
//                   2 (n-1)/n of the bytes leave each rank; piece k returns while k+1 is sent
//   reduce_scatter  the first half of that;  all_gather, broadcast: one exchange
// A single rank reduces an element, from sources in rank order, so all ranks get equal bits.
#ifndef PLINTH_COMM_COLLECTIVE_ENGINE_H_
#define PLINTH_COMM_COLLECTIVE_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "plinth/comm/collective/buffer.h"
#include "plinth/comm/collective/fingerprint.h"
#include "plinth/comm/collective/reduce.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

// One call, its arguments checked. `print.sequence` is filled in when it runs.
struct CollectiveCall {
  Fingerprint print;
  ConstBuffer in;  // equal to `out` for operations in place
  Buffer out;
};

// Used by one thread at a time.
class CollectiveEngine {
 public:
  CollectiveEngine(std::unique_ptr<Transport> transport, absl::Duration timeout);

  const Transport& transport() const { return *transport_; }

  // kDeadlineExceeded, kUnavailable: names the ranks that did not come or are gone, and the call.
  // kFailedPrecondition: the ranks called different things. kAborted: what another rank found.
  // After an error the group is unusable and every later call returns the first error.
  absl::Status Run(CollectiveCall call);

 private:
  // Part of a piece of an all-reduce that one rank reduces.
  struct Share {
    int64_t begin;
    int64_t count;
  };

  absl::Status Agree(const Fingerprint& print, absl::Time deadline);
  absl::Status AllReduce(const CollectiveCall& call, absl::Time deadline);
  absl::Status ReduceScatter(const CollectiveCall& call, absl::Time deadline);
  absl::Status AllGather(const CollectiveCall& call, absl::Time deadline);
  absl::Status Broadcast(const CollectiveCall& call, absl::Time deadline);

  // Queues parts for the next ExchangeQueued; a peer that is this rank is left out.
  void QueueSend(int peer, const std::byte* data, int64_t bytes);
  void QueueReceive(int peer, std::byte* data, int64_t bytes);
  absl::Status ExchangeQueued(const Fingerprint& print, bool arriving, absl::Time deadline);
  absl::Status ToStatus(const PeerFailure& failure, const Fingerprint& print, bool arriving) const;

  Share ShareOf(int owner, int64_t piece_begin, int64_t piece_count) const;
  // Where the part of `peer` waits to be reduced.
  std::byte* Scratch(int peer, int64_t bytes_each);
  // Reduces own[0..count) with the scratch of all other ranks, in rank order.
  void ReduceShare(const Fingerprint& print, const std::byte* own, int64_t count, std::byte* out);

  const std::unique_ptr<Transport> transport_;
  const int rank_;
  const int size_;
  const absl::Duration timeout_;

  uint64_t sequence_ = 0;
  absl::Status failed_;  // the first error
  // Reused between calls.
  std::vector<Fingerprint> prints_;
  std::vector<SendPart> sends_;
  std::vector<ReceivePart> receives_;
  std::vector<std::byte> scratch_;
  std::vector<const void*> sources_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_COLLECTIVE_ENGINE_H_
