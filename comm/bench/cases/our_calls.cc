#include "plinth/comm/bench/cases/our_calls.h"

#include "plinth/comm/call/buffer.h"

namespace plinth::comm {

absl::Status RunOurs(Communicator& comm, const Shape& shape, const CallBuffers& buffers) {
  const int rank = comm.rank();
  const ConstBuffer in{buffers.in, InputElements(shape, rank), shape.dtype};
  const Buffer out{buffers.out, OutputElements(shape, rank), shape.dtype};
  switch (shape.op) {
    case BenchOp::kAllReduce:
      return comm.AllReduce(in, out, shape.reduce);
    case BenchOp::kReduceScatter:
      return comm.ReduceScatter(in, out, shape.reduce);
    case BenchOp::kAllGather:
      return comm.AllGather(in, out);
    case BenchOp::kBroadcast:
      return comm.Broadcast(out, shape.root);
    case BenchOp::kReduce:
      return comm.Reduce(in, out, shape.root, shape.reduce);
    case BenchOp::kGather:
      return comm.Gather(in, out, shape.root);
    case BenchOp::kScatter:
      return comm.Scatter(in, out, shape.root);
    case BenchOp::kAllToAll:
      return comm.AllToAll(in, out);
    case BenchOp::kSendReceive: {
      const SendTo sends[] = {{(rank + 1) % shape.ranks, in}};
      const ReceiveFrom receives[] = {{(rank + shape.ranks - 1) % shape.ranks, out}};
      return comm.Exchange(sends, receives);
    }
    case BenchOp::kBarrier:
      return comm.Barrier();
  }
  return absl::InternalError("no such operation");
}

}  // namespace plinth::comm
