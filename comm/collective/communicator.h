// Collective operations between the ranks of a group.
//
//   ASSIGN_OR_RETURN(CommOptions options, OptionsFromEnvironment());
//   ASSIGN_OR_RETURN(std::unique_ptr<Communicator> comm, Communicator::Create(options));
//   RETURN_IF_ERROR(comm->AllReduce(BufferOf(std::span<float>(gradient)), ReduceOp::kAvg));
//
// Every rank makes the same calls in the same order. Results are equal bit for bit between
// ranks and between runs: elements are reduced in rank order, whatever the transport.
//
// Shapes   zero elements, any count and a group of one are ordinary cases.
// Errors   no call waits longer than CommOptions::timeout once it is its turn.
//          kInvalidArgument    arguments that are wrong by themselves; nothing was sent and the
//                              group stays usable
//          kFailedPrecondition ranks called different operations, dtypes, counts or roots: the
//                              same text on every rank, naming the odd rank and both calls
//          kDeadlineExceeded   "rank 2 did not arrive at all_reduce #17 (f32 x 1024) within 5s"
//          kUnavailable        the same followed by ": process is gone", without waiting
//          kAborted            "aborted by rank 0: " and what rank 0 found
//          After any but the first, buffers hold anything and later calls return the same error.
// Threads  calls are run one at a time in the order made, blocking and asynchronous alike.
//          Thread-safe, but threads that call at once leave the order to chance, and ranks must
//          agree on it.
// Owns     no buffer; a buffer must stay until its call or Work is done.
#ifndef PLINTH_COMM_COLLECTIVE_COMMUNICATOR_H_
#define PLINTH_COMM_COLLECTIVE_COMMUNICATOR_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plinth/comm/collective/buffer.h"
#include "plinth/comm/collective/engine.h"
#include "plinth/comm/collective/reduce.h"
#include "plinth/comm/rendezvous/options.h"
#include "plinth/comm/rendezvous/store.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

// An asynchronous operation. Destroying it waits for its end, as the buffer is in use till then.
// Thread-safe. May outlive its Communicator.
class Work {
 public:
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // The operation's status once it has ended; kDeadlineExceeded when it has not after `limit`
  // (it goes on, and may be waited for again).
  absl::Status Wait(absl::Duration limit);

 private:
  friend class Communicator;
  // Shared with the progress thread.
  struct State {
    std::mutex mutex;  // guards what follows
    std::condition_variable ended;
    bool done = false;
    absl::Status status;
  };
  explicit Work(std::shared_ptr<State> state);
  static void Finish(State& state, absl::Status status);

  const std::shared_ptr<State> state_;
};

class Communicator {
 public:
  // Forms the group; called by every rank, returns when all are connected, within
  // options.timeout. Its own store lives as long as the communicator: to form several groups
  // of the same ranks, share one store and give each group another name.
  static absl::StatusOr<std::unique_ptr<Communicator>> Create(const CommOptions& options);
  static absl::StatusOr<std::unique_ptr<Communicator>> Create(const CommOptions& options,
                                                              std::shared_ptr<Store> store);
  // Over a transport made elsewhere.
  Communicator(std::unique_ptr<Transport> transport, absl::Duration timeout);

  // Ends outstanding operations first. Peers that still wait are told that this rank left.
  ~Communicator();

  int rank() const { return engine_.transport().rank(); }
  int size() const { return engine_.transport().size(); }
  std::string_view transport_name() const { return engine_.transport().name(); }

  // In place: buffer[i] = op over the ranks of buffer[i].
  absl::Status AllReduce(const Buffer& buffer, ReduceOp op = ReduceOp::kSum);
  std::unique_ptr<Work> AllReduceAsync(const Buffer& buffer, ReduceOp op = ReduceOp::kSum);
  // out[i] = op over the ranks of in[rank() * out.count + i]; in.count is size() * out.count.
  // `out` may be that part of `in`.
  absl::Status ReduceScatter(const ConstBuffer& in, const Buffer& out,
                             ReduceOp op = ReduceOp::kSum);
  // out[r * in.count + i] = in[i] of rank r; out.count is size() * in.count. `in` may be this
  // rank's part of `out`. Any dtype.
  absl::Status AllGather(const ConstBuffer& in, const Buffer& out);
  // buffer[i] = buffer[i] of rank `root`. Any dtype.
  absl::Status Broadcast(const Buffer& buffer, int root);
  // Returns once every rank has called it.
  absl::Status Barrier();

 private:
  struct Queued {
    uint64_t ticket;
    CollectiveCall call;
    std::shared_ptr<Work::State> state;
  };

  absl::Status RunInTurn(const CollectiveCall& call);
  void Progress();
  void EndTurn();

  // Ranks read each other's addresses from the store until the last of them is connected, which
  // may be after this rank is. Null for a group of one.
  std::shared_ptr<Store> store_;
  CollectiveEngine engine_;  // used by whoever's turn it is

  std::mutex mutex_;  // guards what follows
  std::condition_variable turn_or_work_;
  uint64_t next_ticket_ = 0;
  uint64_t serving_ = 0;  // the ticket whose turn it is
  std::deque<Queued> queue_;
  bool ending_ = false;
  std::thread progress_;  // started by the first asynchronous call
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_COLLECTIVE_COMMUNICATOR_H_
