// Collective operations between the ranks of a group.
//
//   ASSIGN_OR_RETURN(CommOptions options, OptionsFromEnvironment());
//   ASSIGN_OR_RETURN(std::unique_ptr<Communicator> comm, Communicator::Create(options));
//   RETURN_IF_ERROR(comm->AllReduce(BufferOf(std::span<float>(gradient)), ReduceOp::kAvg));
//   auto work = comm->AllGatherAsync(BufferOf(shard), BufferOf(whole));    // goes on meanwhile
//   RETURN_IF_ERROR(work->Wait(absl::Seconds(60)));
//   ASSIGN_OR_RETURN(auto tp, comm->Split(comm->rank() / 4, comm->rank(), "tp"));
//
// Every rank makes the same calls in the same order; sends and receives concern only the ranks
// they name. Results are equal bit for bit between ranks and between runs: every element is
// combined in an order that the algorithm fixes, which depends on the size of the group and of
// the call, never on time. Calls of up to 1 KiB are reduced in rank order.
//
// Shapes   zero elements, any count and a group of one are ordinary cases: an empty call still
//          waits for all ranks.
// Errors   no call waits longer than its timeout (CallOptions, else the group's) once it is its
//          turn. Messages name ranks as the launcher numbered them.
//          kInvalidArgument    arguments that are wrong by themselves; nothing was sent and the
//                              group stays usable
//          kFailedPrecondition ranks called different operations, dtypes, counts or roots: the
//                              same text on every rank, naming the odd rank and both calls
//          kDeadlineExceeded   "rank 2 did not arrive at all_reduce #17 of group dp (f32 x 1024)
//                              within 5s; its last call was barrier #16 of group dp at train.cc:9"
//          kUnavailable        the same with ": process is gone" after the time, without waiting
//          kAborted            "aborted by rank 0: " and what rank 0 found, or passed to Abort
//          After any but the first, buffers hold anything and later calls return the same error.
// Threads  calls are run one at a time in the order made, blocking and asynchronous alike.
//          Thread-safe, but threads that call at once leave the order to chance, and ranks must
//          agree on it.
// Owns     no buffer; a buffer must stay until its call or Work is done. `in` and `out` may be the
//          same memory where "in place" says so, and must not overlap otherwise.
#ifndef PLINTH_COMM_COLLECTIVE_COMMUNICATOR_H_
#define PLINTH_COMM_COLLECTIVE_COMMUNICATOR_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plinth/comm/call/buffer.h"
#include "plinth/comm/call/call.h"
#include "plinth/comm/call/group.h"
#include "plinth/comm/call/observer.h"
#include "plinth/comm/collective/arguments.h"
#include "plinth/comm/collective/work.h"
#include "plinth/comm/engine/engine.h"
#include "plinth/comm/engine/pairs.h"
#include "plinth/comm/reduce/reduce.h"
#include "plinth/comm/rendezvous/options.h"
#include "plinth/comm/store/store.h"
#include "plinth/comm/transport/shared_space.h"
#include "plinth/comm/transport/transport.h"
#include "plinth/comm/tuner/choice.h"
#include "plinth/comm/tuner/table_set.h"

namespace plinth::comm {

// A group that Split is about to form, as one of its ranks sees it.
struct GroupPlan {
  std::string path;  // no two groups of a launch share one
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the ranks of the group on this host
  int local_size = 1;
};
// What a group runs on. Backends may use the transport, so they end before it.
struct GroupLinks {
  std::unique_ptr<Transport> transport;
  std::vector<std::unique_ptr<Backend>> backends;  // see GroupOptions
};
// Connects the ranks of a plan; called by all of them.
using Connector = std::function<absl::StatusOr<GroupLinks>(const GroupPlan&, absl::Time)>;

struct GroupOptions {
  absl::Duration timeout = absl::Seconds(60);
  std::string name;              // in messages; empty for the group a launch starts with
  std::string path = "world";    // no two groups of a launch share one
  std::vector<int> world_ranks;  // by rank; empty when they are the ranks of the group
  std::vector<uint64_t> hosts;   // as in GroupInfo; empty when all are on one host
  // Algorithms that the user insists on; with any, memory that ranks share is not used directly.
  Pins pins;
  // What the others are chosen by; equal on all ranks.
  TableSet tables;
  // What a rank contributes to a call travels in its note, without a second round, up to so many
  // bytes (at most kMostPayloadBytes); below zero never does. Equal on all ranks.
  int64_t note_payload_bytes = kMostPayloadBytes;
  // Preferred, in order, to the programs that run on every transport.
  std::vector<std::unique_ptr<Backend>> backends;
  std::shared_ptr<CallObserver> observer;  // also of the groups that Split forms; may be null
  Connector connector;                     // without one the group cannot be split
};

class Communicator {
 public:
  // Forms the group; called by every rank, returns when all are connected, within
  // options.timeout. Its own store lives as long as the communicator: to form several groups
  // of the same ranks, share one store and give each group another name, or use Split.
  // Without an observer the calls go to a flight recorder (comm/recorder/recording_observer.h).
  static absl::StatusOr<std::unique_ptr<Communicator>> Create(
      const CommOptions& options, std::shared_ptr<Store> store = nullptr,
      std::shared_ptr<CallObserver> observer = nullptr);
  // Over a transport made elsewhere.
  Communicator(std::unique_ptr<Transport> transport, GroupOptions options);
  Communicator(std::unique_ptr<Transport> transport, absl::Duration timeout);

  // Ends outstanding operations first. Peers that still wait are told that this rank left.
  ~Communicator();

  int rank() const { return engine_.transport().rank(); }
  int size() const { return engine_.transport().size(); }
  const GroupInfo& group() const { return engine_.group(); }
  std::string_view transport_name() const { return engine_.transport().name(); }
  // Bytes that this rank's transport has moved so far. While no call runs.
  ByteCounts bytes_moved() const { return engine_.transport().bytes_moved(); }

  // Of every operation, the form that ends in Async returns at once.

  // out[i] = op over the ranks of in[i]. In place: in is out.
  absl::Status AllReduce(const Buffer& buffer, ReduceOp op = ReduceOp::kSum,
                         const CallOptions& options = {});
  absl::Status AllReduce(const ConstBuffer& in, const Buffer& out, ReduceOp op = ReduceOp::kSum,
                         const CallOptions& options = {});
  std::unique_ptr<Work> AllReduceAsync(const Buffer& buffer, ReduceOp op = ReduceOp::kSum,
                                       const CallOptions& options = {});
  std::unique_ptr<Work> AllReduceAsync(const ConstBuffer& in, const Buffer& out,
                                       ReduceOp op = ReduceOp::kSum,
                                       const CallOptions& options = {});

  // The same at rank `root` only; `out` of other ranks is not looked at. In place: in is out.
  absl::Status Reduce(const ConstBuffer& in, const Buffer& out, int root,
                      ReduceOp op = ReduceOp::kSum, const CallOptions& options = {});
  std::unique_ptr<Work> ReduceAsync(const ConstBuffer& in, const Buffer& out, int root,
                                    ReduceOp op = ReduceOp::kSum, const CallOptions& options = {});

  // out[i] = op over the ranks of in[rank() * out.count + i]; in.count is size() * out.count.
  // In place: out is that part of in.
  absl::Status ReduceScatter(const ConstBuffer& in, const Buffer& out, ReduceOp op = ReduceOp::kSum,
                             const CallOptions& options = {});
  std::unique_ptr<Work> ReduceScatterAsync(const ConstBuffer& in, const Buffer& out,
                                           ReduceOp op = ReduceOp::kSum,
                                           const CallOptions& options = {});
  // Shares of counts[r] elements for rank r, one after the other in `in`; the same counts on every
  // rank.
  absl::Status ReduceScatterV(const ConstBuffer& in, const Buffer& out,
                              std::span<const int64_t> counts, ReduceOp op = ReduceOp::kSum,
                              const CallOptions& options = {});
  std::unique_ptr<Work> ReduceScatterVAsync(const ConstBuffer& in, const Buffer& out,
                                            std::span<const int64_t> counts,
                                            ReduceOp op = ReduceOp::kSum,
                                            const CallOptions& options = {});

  // out[r * in.count + i] = in[i] of rank r; out.count is size() * in.count. In place: in is this
  // rank's part of out. Any dtype, as for all that do not reduce.
  absl::Status AllGather(const ConstBuffer& in, const Buffer& out, const CallOptions& options = {});
  std::unique_ptr<Work> AllGatherAsync(const ConstBuffer& in, const Buffer& out,
                                       const CallOptions& options = {});
  // counts[r] elements of rank r; the same counts on every rank.
  absl::Status AllGatherV(const ConstBuffer& in, const Buffer& out, std::span<const int64_t> counts,
                          const CallOptions& options = {});
  std::unique_ptr<Work> AllGatherVAsync(const ConstBuffer& in, const Buffer& out,
                                        std::span<const int64_t> counts,
                                        const CallOptions& options = {});

  // buffer[i] = buffer[i] of rank `root`.
  absl::Status Broadcast(const Buffer& buffer, int root, const CallOptions& options = {});
  std::unique_ptr<Work> BroadcastAsync(const Buffer& buffer, int root,
                                       const CallOptions& options = {});

  // AllGather at rank `root` only; `out` of other ranks is not looked at.
  absl::Status Gather(const ConstBuffer& in, const Buffer& out, int root,
                      const CallOptions& options = {});
  std::unique_ptr<Work> GatherAsync(const ConstBuffer& in, const Buffer& out, int root,
                                    const CallOptions& options = {});
  // out[i] = in[rank() * out.count + i] of rank `root`; `in` of other ranks is not looked at. In
  // place at the root: out is that part of in.
  absl::Status Scatter(const ConstBuffer& in, const Buffer& out, int root,
                       const CallOptions& options = {});
  std::unique_ptr<Work> ScatterAsync(const ConstBuffer& in, const Buffer& out, int root,
                                     const CallOptions& options = {});

  // out[r * c + i] = in[rank() * c + i] of rank r, for c = in.count / size(). Not in place.
  absl::Status AllToAll(const ConstBuffer& in, const Buffer& out, const CallOptions& options = {});
  std::unique_ptr<Work> AllToAllAsync(const ConstBuffer& in, const Buffer& out,
                                      const CallOptions& options = {});
  // send_counts[r] elements for rank r one after the other in `in`; receive_counts[r] of rank r
  // likewise in `out`. What one rank sends to another is what that one expects.
  absl::Status AllToAllV(const ConstBuffer& in, std::span<const int64_t> send_counts,
                         const Buffer& out, std::span<const int64_t> receive_counts,
                         const CallOptions& options = {});
  std::unique_ptr<Work> AllToAllVAsync(const ConstBuffer& in, std::span<const int64_t> send_counts,
                                       const Buffer& out, std::span<const int64_t> receive_counts,
                                       const CallOptions& options = {});

  // Returns once every rank has called it.
  absl::Status Barrier(const CallOptions& options = {});
  std::unique_ptr<Work> BarrierAsync(const CallOptions& options = {});

  // Between two ranks. Each waits for the other, so two ranks that both send first disagree, and
  // are told so: they use Exchange. `peer` may be this rank within one Exchange.
  absl::Status Send(const ConstBuffer& buffer, int peer, const CallOptions& options = {});
  absl::Status Receive(const Buffer& buffer, int peer, const CallOptions& options = {});
  std::unique_ptr<Work> SendAsync(const ConstBuffer& buffer, int peer,
                                  const CallOptions& options = {});
  std::unique_ptr<Work> ReceiveAsync(const Buffer& buffer, int peer,
                                     const CallOptions& options = {});
  // All at once, in no order between peers: what one Exchange has for a peer, one Exchange (or,
  // for a single part, one Send or Receive) of that peer has for this rank. Several parts for one
  // peer match in the order listed.
  absl::Status Exchange(std::span<const SendTo> sends, std::span<const ReceiveFrom> receives,
                        const CallOptions& options = {});
  std::unique_ptr<Work> ExchangeAsync(std::span<const SendTo> sends,
                                      std::span<const ReceiveFrom> receives,
                                      const CallOptions& options = {});

  // Called by every rank: those of equal color form a group of their own, in the order of `key`
  // and, where that is equal, of their ranks. Null for a rank of color kNoColor. The new group
  // has its own connections, so it and this one may be used at once. Names need not be unique.
  static constexpr int kNoColor = -1;
  absl::StatusOr<std::unique_ptr<Communicator>> Split(int color, int key,
                                                      std::string_view name = {},
                                                      const CallOptions& options = {});
  // Called by every rank with the same list: a group of these ranks of this one, in this order.
  // Null for a rank that is not on it.
  absl::StatusOr<std::unique_ptr<Communicator>> Subgroup(std::span<const int> ranks,
                                                         std::string_view name = {},
                                                         const CallOptions& options = {});

  // Called by every rank, each with the bytes it wants: memory that calls on this group move with
  // no copy to and fro where the transport has such, and plain memory where not. Zeroed, aligned
  // to a page. kResourceExhausted, on every rank, when one cannot have its part; the group stays
  // usable.
  absl::StatusOr<SharedMemory> Allocate(int64_t bytes, const CallOptions& options = {});

  // Makes the calls that run, wait or come later, on this rank and the others, end with kAborted:
  // "aborted by rank 3: " and `reason`. The first counts. Thread-safe, does not block.
  void Abort(std::string_view reason);

 private:
  struct Queued {
    uint64_t ticket;
    std::function<absl::Status()> run;
    std::shared_ptr<Work::State> state;
  };

  absl::Status Perform(absl::StatusOr<CollectiveCall> call, const CallOptions& options);
  std::unique_ptr<Work> Launch(absl::StatusOr<CollectiveCall> call, const CallOptions& options);
  absl::Status PerformPairs(absl::StatusOr<PairCalls> pairs, const CallOptions& options);
  std::unique_ptr<Work> LaunchPairs(absl::StatusOr<PairCalls> pairs, const CallOptions& options);
  // What the engine shall be told, and the number that its observer gave.
  uint64_t Prepare(CollectiveCall& call, const CallOptions& options);
  void Prepare(PairCalls& pairs, const CallOptions& options);
  std::unique_ptr<Work> Enqueue(std::function<absl::Status()> run);
  static std::unique_ptr<Work> Refused(absl::Status status);

  absl::StatusOr<std::unique_ptr<Communicator>> Form(int color, int key, std::string_view name,
                                                     std::span<const int> list,
                                                     const CallOptions& options);

  void AwaitTurn();
  void EndTurn();
  void Progress();

  const std::string path_;
  const Pins pins_;
  const TableSet tables_;
  const std::shared_ptr<CallObserver> observer_;
  const Connector connector_;
  CollectiveEngine engine_;  // used by whoever's turn it is
  const Arguments arguments_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable turn_or_work_;
  uint64_t next_ticket_ = 0;
  uint64_t serving_ = 0;  // the ticket whose turn it is
  int waiting_ = 0;       // threads that wait for a turn or work
  std::deque<Queued> queue_;
  bool ending_ = false;
  std::thread progress_;  // started by the first asynchronous call
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_COLLECTIVE_COMMUNICATOR_H_
