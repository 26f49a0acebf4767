#include "plinth/comm/bench/peers/mpi/mpi_peer.h"

#include <chrono>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

// What MPI reads when it starts. mpirun has set nothing of it unless its user did.
void AskForTcp(bool one_host) {
  constexpr int kKeepTheUsers = 0;
  setenv("OMPI_MCA_pml", "ob1", kKeepTheUsers);
  setenv("OMPI_MCA_btl", "self,tcp", kKeepTheUsers);
  if (one_host) setenv("OMPI_MCA_btl_tcp_if_include", "lo", kKeepTheUsers);
}

// By what MPI has kept loaded: of the ways to move data, each a library of its own, it unloads
// those that it does not use.
absl::Status CheckOnlyTcp() {
  std::ifstream maps("/proc/self/maps");
  std::set<std::string> ways;
  for (std::string line; std::getline(maps, line);) {
    const std::string file = line.substr(line.rfind('/') + 1);
    for (const char* kind : {"mca_btl_", "mca_pml_", "mca_mtl_"}) {
      if (absl::StartsWith(file, kind)) ways.insert(file.substr(0, file.find('.')));
    }
  }
  ways.erase("mca_btl_self");
  if (ways == std::set<std::string>{"mca_btl_tcp", "mca_pml_ob1"}) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("--vs=mpi beside tcp: Open MPI moves data by ", absl::StrJoin(ways, ", "),
                   ", want mca_btl_tcp, mca_pml_ob1 only: unset OMPI_MCA_btl and OMPI_MCA_pml"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<MpiPeer>> MpiPeer::Start(const MpiUse& use) {
  ASSIGN_OR_RETURN(MpiLibrary mpi, LoadMpi());
  if (use.tcp) AskForTcp(use.one_host);
  int provided = 0;
  const int threads = use.any_thread ? kMpiThreadMultiple : kThreadFunneled;
  RETURN_IF_ERROR(MpiResult(mpi, mpi.Init_thread(nullptr, nullptr, threads, &provided), "start"));
  std::unique_ptr<MpiPeer> peer(new MpiPeer(std::move(mpi), use.tcp));
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
  if (use.tcp) RETURN_IF_ERROR(CheckOnlyTcp());
  return peer;
}

MpiPeer::~MpiPeer() { mpi_.Finalize(); }

std::string MpiPeer::version() const {
  return mpi_.version.substr(0, mpi_.version.find(',')) + (tcp_ ? " over tcp" : "");
}

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

bool MpiPeer::Supports(const Shape& shape, bool in_place) const {
  if (ShapeBytes(shape) > INT_MAX) return false;  // MPI counts in int
  if (Reduces(shape.op) && (TypeOf(shape.dtype) == nullptr || OpOf(shape.reduce) == nullptr)) {
    return false;
  }
  // MPI_Reduce_scatter_block in place puts its result elsewhere.
  return shape.op != BenchOp::kReduceScatter || !in_place;
}

absl::StatusOr<double> MpiPeer::Run(const Shape& shape, const CallBuffers& buffers, int calls) {
  RETURN_IF_ERROR(MpiResult(mpi_, mpi_.Barrier(mpi_.world), "wait for all ranks"));
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) {
    const int code = Call(shape, buffers);
    if (code != kMpiSuccess) return MpiResult(mpi_, code, std::string(BenchOpName(shape.op)));
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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
