// The operations of a communicator: each checks its arguments and becomes a call.
#include "plinth/comm/collective/communicator.h"

namespace plinth::comm {

absl::Status Communicator::AllReduce(const Buffer& buffer, ReduceOp op,
                                     const CallOptions& options) {
  return Perform(arguments_.AllReduce(buffer, buffer, op), options);
}
std::unique_ptr<Work> Communicator::AllReduceAsync(const Buffer& buffer, ReduceOp op,
                                                   const CallOptions& options) {
  return Launch(arguments_.AllReduce(buffer, buffer, op), options);
}

absl::Status Communicator::AllReduce(const ConstBuffer& in, const Buffer& out, ReduceOp op,
                                     const CallOptions& options) {
  return Perform(arguments_.AllReduce(in, out, op), options);
}
std::unique_ptr<Work> Communicator::AllReduceAsync(const ConstBuffer& in, const Buffer& out,
                                                   ReduceOp op, const CallOptions& options) {
  return Launch(arguments_.AllReduce(in, out, op), options);
}

absl::Status Communicator::Reduce(const ConstBuffer& in, const Buffer& out, int root, ReduceOp op,
                                  const CallOptions& options) {
  return Perform(arguments_.Reduce(in, out, root, op), options);
}
std::unique_ptr<Work> Communicator::ReduceAsync(const ConstBuffer& in, const Buffer& out, int root,
                                                ReduceOp op, const CallOptions& options) {
  return Launch(arguments_.Reduce(in, out, root, op), options);
}

absl::Status Communicator::ReduceScatter(const ConstBuffer& in, const Buffer& out, ReduceOp op,
                                         const CallOptions& options) {
  return Perform(arguments_.ReduceScatter(in, out, op), options);
}
std::unique_ptr<Work> Communicator::ReduceScatterAsync(const ConstBuffer& in, const Buffer& out,
                                                       ReduceOp op, const CallOptions& options) {
  return Launch(arguments_.ReduceScatter(in, out, op), options);
}

absl::Status Communicator::ReduceScatterV(const ConstBuffer& in, const Buffer& out,
                                          std::span<const int64_t> counts, ReduceOp op,
                                          const CallOptions& options) {
  return Perform(arguments_.ReduceScatterV(in, out, counts, op), options);
}
std::unique_ptr<Work> Communicator::ReduceScatterVAsync(const ConstBuffer& in, const Buffer& out,
                                                        std::span<const int64_t> counts,
                                                        ReduceOp op, const CallOptions& options) {
  return Launch(arguments_.ReduceScatterV(in, out, counts, op), options);
}

absl::Status Communicator::AllGather(const ConstBuffer& in, const Buffer& out,
                                     const CallOptions& options) {
  return Perform(arguments_.AllGather(in, out), options);
}
std::unique_ptr<Work> Communicator::AllGatherAsync(const ConstBuffer& in, const Buffer& out,
                                                   const CallOptions& options) {
  return Launch(arguments_.AllGather(in, out), options);
}

absl::Status Communicator::AllGatherV(const ConstBuffer& in, const Buffer& out,
                                      std::span<const int64_t> counts, const CallOptions& options) {
  return Perform(arguments_.AllGatherV(in, out, counts), options);
}
std::unique_ptr<Work> Communicator::AllGatherVAsync(const ConstBuffer& in, const Buffer& out,
                                                    std::span<const int64_t> counts,
                                                    const CallOptions& options) {
  return Launch(arguments_.AllGatherV(in, out, counts), options);
}

absl::Status Communicator::Broadcast(const Buffer& buffer, int root, const CallOptions& options) {
  return Perform(arguments_.Broadcast(buffer, root), options);
}
std::unique_ptr<Work> Communicator::BroadcastAsync(const Buffer& buffer, int root,
                                                   const CallOptions& options) {
  return Launch(arguments_.Broadcast(buffer, root), options);
}

absl::Status Communicator::Gather(const ConstBuffer& in, const Buffer& out, int root,
                                  const CallOptions& options) {
  return Perform(arguments_.Gather(in, out, root), options);
}
std::unique_ptr<Work> Communicator::GatherAsync(const ConstBuffer& in, const Buffer& out, int root,
                                                const CallOptions& options) {
  return Launch(arguments_.Gather(in, out, root), options);
}

absl::Status Communicator::Scatter(const ConstBuffer& in, const Buffer& out, int root,
                                   const CallOptions& options) {
  return Perform(arguments_.Scatter(in, out, root), options);
}
std::unique_ptr<Work> Communicator::ScatterAsync(const ConstBuffer& in, const Buffer& out, int root,
                                                 const CallOptions& options) {
  return Launch(arguments_.Scatter(in, out, root), options);
}

absl::Status Communicator::AllToAll(const ConstBuffer& in, const Buffer& out,
                                    const CallOptions& options) {
  return Perform(arguments_.AllToAll(in, out), options);
}
std::unique_ptr<Work> Communicator::AllToAllAsync(const ConstBuffer& in, const Buffer& out,
                                                  const CallOptions& options) {
  return Launch(arguments_.AllToAll(in, out), options);
}

absl::Status Communicator::AllToAllV(const ConstBuffer& in, std::span<const int64_t> send_counts,
                                     const Buffer& out, std::span<const int64_t> receive_counts,
                                     const CallOptions& options) {
  return Perform(arguments_.AllToAllV(in, send_counts, out, receive_counts), options);
}
std::unique_ptr<Work> Communicator::AllToAllVAsync(const ConstBuffer& in,
                                                   std::span<const int64_t> send_counts,
                                                   const Buffer& out,
                                                   std::span<const int64_t> receive_counts,
                                                   const CallOptions& options) {
  return Launch(arguments_.AllToAllV(in, send_counts, out, receive_counts), options);
}

absl::Status Communicator::Barrier(const CallOptions& options) {
  return Perform(arguments_.Barrier(), options);
}
std::unique_ptr<Work> Communicator::BarrierAsync(const CallOptions& options) {
  return Launch(arguments_.Barrier(), options);
}

absl::Status Communicator::Send(const ConstBuffer& buffer, int peer, const CallOptions& options) {
  const SendTo send{peer, buffer};
  return Exchange({&send, 1}, {}, options);
}
std::unique_ptr<Work> Communicator::SendAsync(const ConstBuffer& buffer, int peer,
                                              const CallOptions& options) {
  const SendTo send{peer, buffer};
  return ExchangeAsync({&send, 1}, {}, options);
}

absl::Status Communicator::Receive(const Buffer& buffer, int peer, const CallOptions& options) {
  const ReceiveFrom receive{peer, buffer};
  return Exchange({}, {&receive, 1}, options);
}
std::unique_ptr<Work> Communicator::ReceiveAsync(const Buffer& buffer, int peer,
                                                 const CallOptions& options) {
  const ReceiveFrom receive{peer, buffer};
  return ExchangeAsync({}, {&receive, 1}, options);
}

absl::Status Communicator::Exchange(std::span<const SendTo> sends,
                                    std::span<const ReceiveFrom> receives,
                                    const CallOptions& options) {
  return PerformPairs(arguments_.Exchange(sends, receives), options);
}
std::unique_ptr<Work> Communicator::ExchangeAsync(std::span<const SendTo> sends,
                                                  std::span<const ReceiveFrom> receives,
                                                  const CallOptions& options) {
  return LaunchPairs(arguments_.Exchange(sends, receives), options);
}

}  // namespace plinth::comm
