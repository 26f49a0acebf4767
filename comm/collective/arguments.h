// Checks what a rank passes to an operation and makes a call of it.
#ifndef PLINTH_COMM_COLLECTIVE_ARGUMENTS_H_
#define PLINTH_COMM_COLLECTIVE_ARGUMENTS_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "plinth/comm/call/buffer.h"
#include "plinth/comm/call/call.h"
#include "plinth/comm/call/group.h"
#include "plinth/comm/engine/pairs.h"
#include "plinth/comm/reduce/reduce.h"

namespace plinth::comm {

// The operations are described in communicator.h. All refuse what is wrong by itself with
// kInvalidArgument: counts that do not fit each other, dtypes that differ or cannot be reduced,
// roots outside the group, buffers that overlap other than in place. None looks at other ranks.
class Arguments {
 public:
  // The group outlives it.
  explicit Arguments(const GroupInfo& group) : group_(group) {}

  absl::StatusOr<CollectiveCall> Barrier() const;
  absl::StatusOr<CollectiveCall> AllReduce(const ConstBuffer& in, const Buffer& out,
                                           ReduceOp op) const;
  absl::StatusOr<CollectiveCall> Reduce(const ConstBuffer& in, const Buffer& out, int root,
                                        ReduceOp op) const;
  absl::StatusOr<CollectiveCall> ReduceScatter(const ConstBuffer& in, const Buffer& out,
                                               ReduceOp op) const;
  absl::StatusOr<CollectiveCall> ReduceScatterV(const ConstBuffer& in, const Buffer& out,
                                                std::span<const int64_t> counts, ReduceOp op) const;
  absl::StatusOr<CollectiveCall> AllGather(const ConstBuffer& in, const Buffer& out) const;
  absl::StatusOr<CollectiveCall> AllGatherV(const ConstBuffer& in, const Buffer& out,
                                            std::span<const int64_t> counts) const;
  absl::StatusOr<CollectiveCall> Gather(const ConstBuffer& in, const Buffer& out, int root) const;
  absl::StatusOr<CollectiveCall> Scatter(const ConstBuffer& in, const Buffer& out, int root) const;
  absl::StatusOr<CollectiveCall> Broadcast(const Buffer& buffer, int root) const;
  absl::StatusOr<CollectiveCall> AllToAll(const ConstBuffer& in, const Buffer& out) const;
  absl::StatusOr<CollectiveCall> AllToAllV(const ConstBuffer& in,
                                           std::span<const int64_t> send_counts, const Buffer& out,
                                           std::span<const int64_t> receive_counts) const;
  // At least one of the two lists has an element.
  absl::StatusOr<PairCalls> Exchange(std::span<const SendTo> sends,
                                     std::span<const ReceiveFrom> receives) const;

 private:
  int size() const { return group_.size(); }
  absl::Status CheckRoot(int root) const;

  const GroupInfo& group_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_COLLECTIVE_ARGUMENTS_H_
