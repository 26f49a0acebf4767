// The group whose data moves between GPUs through NVIDIA's NCCL, loaded at run time.
//
// The ranks meet through a host transport as for any group; over it they check, before NCCL can
// hang on it, that each has the same NCCL and a GPU of its own, and share NCCL's unique id.
// A group stays on the GPU of CommOptions::device for its whole life. A barrier needs no GPU: the
// ranks meet on the host.
#ifndef PLINTH_COMM_TRANSPORT_NCCL_CONNECT_H_
#define PLINTH_COMM_TRANSPORT_NCCL_CONNECT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plinth/comm/call/call.h"
#include "plinth/comm/rendezvous/options.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

// What is loaded, by file name.
struct NcclFiles {
  std::string nccl = "libnccl.so.2";
  std::string driver = "libcuda.so.1";
};

// Called by every rank, with the host transport of the group, which outlives the backend. Errors
// name the rank that has the problem and are the same on all ranks:
//   kUnavailable         a rank has no NCCL, no driver, or NCCL reports an error; a rank is gone
//   kFailedPrecondition  NCCL is too old or not the same on all ranks, no such GPU, a GPU taken
//                        by two ranks
//   kDeadlineExceeded    a rank did not come, or NCCL did not connect in time
absl::StatusOr<std::unique_ptr<Backend>> ConnectNccl(const CommOptions& options,
                                                     Transport& transport, absl::Time deadline,
                                                     const NcclFiles& files = {});

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_NCCL_CONNECT_H_
