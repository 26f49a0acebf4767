#include "plinth/comm/bench/peers/mpi/mpi_peer.h"

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "plinth/comm/net/socket.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr int kThreadFunneled = 1;  // of MPI's interface
constexpr int kTag = 7;

int NumberFromEnvironment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  int value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MpiPeer>> MpiPeer::Start() {
  ASSIGN_OR_RETURN(MpiLibrary mpi, LoadMpi());
  int provided = 0;
  RETURN_IF_ERROR(
      MpiResult(mpi, mpi.Init_thread(nullptr, nullptr, kThreadFunneled, &provided), "start"));
  std::unique_ptr<MpiPeer> peer(new MpiPeer(std::move(mpi)));
  const MpiLibrary& m = peer->mpi_;
  RETURN_IF_ERROR(
      MpiResult(m, m.Comm_set_errhandler(m.world, m.errors_return), "have errors returned"));
  RETURN_IF_ERROR(MpiResult(m, m.Comm_rank(m.world, &peer->rank_), "ask for the rank"));
  RETURN_IF_ERROR(MpiResult(m, m.Comm_size(m.world, &peer->size_), "ask for the size"));
  const int announced = NumberFromEnvironment("OMPI_COMM_WORLD_SIZE", 1);
  if (announced != peer->size_) {
    return absl::FailedPreconditionError(absl::StrCat("mpirun announces ", announced, " ranks, ",
                                                      peer->version(), " sees ", peer->size_));
  }
  return peer;
}

MpiPeer::~MpiPeer() { mpi_.Finalize(); }

std::string MpiPeer::version() const { return mpi_.version.substr(0, mpi_.version.find(',')); }

MpiDatatype MpiPeer::TypeOf(DType dtype) const {
  switch (dtype) {
    case DType::kF32:
      return mpi_.f32;
    case DType::kF64:
      return mpi_.f64;
    case DType::kI8:
      return mpi_.i8;
    case DType::kU8:
      return mpi_.u8;
    case DType::kI32:
      return mpi_.i32;
    case DType::kU32:
      return mpi_.u32;
    case DType::kI64:
      return mpi_.i64;
    case DType::kU64:
      return mpi_.u64;
    default:
      return nullptr;
  }
}

MpiOp MpiPeer::OpOf(ReduceOp op) const {
  switch (op) {
    case ReduceOp::kSum:
      return mpi_.sum;
    case ReduceOp::kProd:
      return mpi_.prod;
    case ReduceOp::kMin:
      return mpi_.min;
    case ReduceOp::kMax:
      return mpi_.max;
    default:
      return nullptr;
  }
}

absl::StatusOr<CommOptions> MpiPeer::Options() {
  CommOptions options;
  options.rank = rank_;
  options.size = size_;
  options.local_rank = NumberFromEnvironment("OMPI_COMM_WORLD_LOCAL_RANK", rank_);
  options.local_size = NumberFromEnvironment("OMPI_COMM_WORLD_LOCAL_SIZE", size_);
  struct Meeting {
    int port;
    char host[256];
  } meeting = {};
  if (rank_ == 0) {
    ASSIGN_OR_RETURN(const Listener listener, Listen(0));
    meeting.port = listener.port;  // free again at the end of this block
    if (gethostname(meeting.host, sizeof(meeting.host) - 1) != 0) {
      return absl::ErrnoToStatus(errno, "gethostname");
    }
  }
  RETURN_IF_ERROR(MpiResult(mpi_, mpi_.Bcast(&meeting, sizeof(meeting), mpi_.byte, 0, mpi_.world),
                            "tell the port"));
  options.store_port = meeting.port;
  if (options.local_size < options.size) options.store_host = meeting.host;
  return options;
}

bool MpiPeer::Supports(const Shape& shape, bool in_place) const {
  if (ShapeBytes(shape) > INT_MAX) return false;  // MPI counts in int
  if (Reduces(shape.op) && (TypeOf(shape.dtype) == nullptr || OpOf(shape.reduce) == nullptr)) {
    return false;
  }
  // MPI_Reduce_scatter_block in place puts its result elsewhere.
  return shape.op != BenchOp::kReduceScatter || !in_place;
}

absl::Status MpiPeer::Run(const Shape& shape, const CallBuffers& buffers) {
  const int code = Call(shape, buffers);
  if (code == kMpiSuccess) return absl::OkStatus();
  return MpiResult(mpi_, code, std::string(BenchOpName(shape.op)));
}

int MpiPeer::Call(const Shape& shape, const CallBuffers& buffers) const {
  const MpiLibrary& m = mpi_;
  const bool bytes = TypeOf(shape.dtype) == nullptr;
  const MpiDatatype type = bytes ? m.byte : TypeOf(shape.dtype);
  const int count = static_cast<int>(shape.count * (bytes ? DTypeSize(shape.dtype) : 1));
  const MpiOp op = OpOf(shape.reduce);
  const int root = shape.root;
  // Where an operation has a root, only the root says that it is in place.
  const bool in_place = buffers.in_place && (!HasRoot(shape.op) || rank_ == root);
  const void* in = in_place ? kMpiInPlace : buffers.in;
  void* out = buffers.out;
  switch (shape.op) {
    case BenchOp::kAllReduce:
      return m.Allreduce(in, out, count, type, op, m.world);
    case BenchOp::kReduceScatter:
      return m.Reduce_scatter_block(in, out, count, type, op, m.world);
    case BenchOp::kAllGather:
      return m.Allgather(in, count, type, out, count, type, m.world);
    case BenchOp::kBroadcast:
      return m.Bcast(out, count, type, root, m.world);
    case BenchOp::kReduce:
      return m.Reduce(in, out, count, type, op, root, m.world);
    case BenchOp::kGather:
      return m.Gather(in, count, type, out, count, type, root, m.world);
    case BenchOp::kScatter:
      return m.Scatter(buffers.in, count, type, in_place ? kMpiInPlace : out, count, type, root,
                       m.world);
    case BenchOp::kAllToAll:
      return m.Alltoall(in, count, type, out, count, type, m.world);
    case BenchOp::kSendReceive:
      return m.Sendrecv(in, count, type, (rank_ + 1) % size_, kTag, out, count, type,
                        (rank_ + size_ - 1) % size_, kTag, m.world, nullptr);
    case BenchOp::kBarrier:
      return m.Barrier(m.world);
  }
  return kMpiSuccess;
}

}  // namespace plinth::comm
