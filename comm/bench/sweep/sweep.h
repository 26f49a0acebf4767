// The measurement itself, as one rank.
#ifndef PLINTH_COMM_BENCH_SWEEP_SWEEP_H_
#define PLINTH_COMM_BENCH_SWEEP_SWEEP_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/comm/bench/config.h"
#include "plinth/comm/bench/peers/peer.h"
#include "plinth/comm/rendezvous/options.h"
#include "plinth/comm/store/store.h"

namespace plinth::comm {

// Starts this rank's end of the library to compare with.
using PeerStarter =
    std::function<absl::StatusOr<std::unique_ptr<Peer>>(const CommOptions&, Store&)>;

// Forms a group over each transport in turn and measures all that `config` asks for. Rank 0
// prints to stdout: the table as it grows, or JSON at the end. Without `start_peer` nothing stands
// beside it. Errors: those of the communicator and of the peer; kInternal when results were wrong.
absl::Status RunSweep(const BenchConfig& config, const CommOptions& options,
                      const PeerStarter& start_peer);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_SWEEP_SWEEP_H_
