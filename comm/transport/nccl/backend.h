// Runs collectives on GPUs through NCCL, for a group that has formed.
#ifndef PLINTH_COMM_TRANSPORT_NCCL_BACKEND_H_
#define PLINTH_COMM_TRANSPORT_NCCL_BACKEND_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "plinth/comm/call/call.h"
#include "plinth/comm/transport/nccl/gpu.h"
#include "plinth/comm/transport/nccl/library.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

// A rank's end of NCCL's communicator; ended by its destructor. Calls do not block.
struct NcclGroup {
  NcclLibrary nccl;
  std::unique_ptr<GpuStream> gpu;
  NcclComm comm = nullptr;
};

// Buffers lie on the GPU of the group, and what is queued on other streams for them is through
// when a call begins. NCCL's order of reduction is its own: results are equal on all ranks, but
// not bit for bit those of other transports.
//
// The host transport meets before each call, so NCCL only sees calls on which all ranks agree.
// While NCCL works, Run looks at its asynchronous error, at the host transport (an abort, a rank
// that is gone) and at the deadline; any of them ends NCCL's communicator (ncclCommAbort) after the
// others have been told. Errors, besides those of Communicator:
//   kUnavailable    what NCCL or the GPU reported, with this rank and the call
//   kUnimplemented  the loaded NCCL cannot reduce such elements, on any rank
// ncclCommAbort itself may wait for the GPU.
class NcclBackend final : public Backend {
 public:
  // `transport` connects the same ranks and outlives the backend; it is used within Run.
  NcclBackend(NcclGroup group, Transport& transport);
  ~NcclBackend() override;

  std::string_view name() const override { return "nccl"; }
  bool OwnsBuffers() const override { return true; }
  absl::Status Run(const CollectiveCall& call, absl::Time deadline) override;
  absl::Status RunPairs(std::span<const CollectiveCall> calls, absl::Time deadline) override;
  void Abort() override { aborted_.store(true); }

 private:
  absl::Status CheckTypes(const CollectiveCall& call) const;
  // Has `queue` put the call on the stream, and waits for its end.
  absl::Status RunQueued(const CollectiveCall& call, absl::Time deadline,
                         const std::function<int()>& queue);
  // These put a call on the stream; a result of NCCL.
  int Queue(const CollectiveCall& call);
  int QueuePairs(std::span<const CollectiveCall> calls);
  int QueueReduceScatterV(const CollectiveCall& call);
  int QueueAllGatherV(const CollectiveCall& call);
  int QueueGather(const CollectiveCall& call);
  int QueueScatter(const CollectiveCall& call);
  int QueueAllToAll(const CollectiveCall& call);
  int QueueAllToAllV(const CollectiveCall& call);
  int Send(const std::byte* data, int64_t bytes, int peer);
  int Receive(std::byte* data, int64_t bytes, int peer);

  absl::Status AwaitEnd(const CollectiveCall& call, absl::Time deadline);
  // Why other ranks keep the call from ending, if they do.
  std::optional<absl::Status> AskTransport(const CollectiveCall& call, bool at_deadline);
  absl::Status Failure(const CollectiveCall& call, const std::string& reason) const;
  // Tells the others and ends NCCL's communicator.
  absl::Status Fail(absl::Status status);

  NcclGroup group_;
  Transport& transport_;
  const int rank_;
  const int size_;
  std::atomic<bool> aborted_ = false;
  std::optional<absl::Time> gone_since_;  // during a call: a rank was found gone
  absl::Status failed_;                   // the first error
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_NCCL_BACKEND_H_
