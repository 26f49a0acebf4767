// NVIDIA's NCCL, loaded when asked for: neither NCCL nor CUDA is needed to build a program, or to
// start one that does not ask.
//
// What is declared here is the part of NCCL 2's binary interface that all releases from
// kLeastNcclVersion on have in common.
#ifndef PLINTH_COMM_TRANSPORT_NCCL_LIBRARY_H_
#define PLINTH_COMM_TRANSPORT_NCCL_LIBRARY_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace plinth::comm {

using NcclComm = void*;
using NcclStream = void*;  // a CUstream

struct NcclUniqueId {
  char bytes[128];
};

// Of a communicator; later releases append fields, which they fill in themselves when `version` is
// that of a release without them.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;  // 0: calls return at once and go on in the background
};

// Results of calls.
inline constexpr int kNcclSuccess = 0;
inline constexpr int kNcclInProgress = 7;

// Version numbers are major * 10000 + minor * 100 + patch. The first with communicators that do
// not block, so that a rank that does not come cannot hold the others for ever.
inline constexpr int kLeastNcclVersion = 21400;
inline constexpr int kFirstNcclVersionWithF8 = 22400;

// The functions that Plinth uses, with NCCL's names and arguments; each returns a result.
struct NcclLibrary {
  int (*GetVersion)(int* version);
  int (*GetUniqueId)(NcclUniqueId* id);
  const char* (*GetErrorString)(int result);
  const char* (*GetLastError)(NcclComm comm);

  int (*CommInitRankConfig)(NcclComm* comm, int size, NcclUniqueId id, int rank,
                            NcclConfig* config);
  int (*CommGetAsyncError)(NcclComm comm, int* result);
  int (*CommFinalize)(NcclComm comm);
  int (*CommDestroy)(NcclComm comm);
  int (*CommAbort)(NcclComm comm);

  int (*AllReduce)(const void* in, void* out, size_t count, int type, int op, NcclComm comm,
                   NcclStream stream);
  int (*ReduceScatter)(const void* in, void* out, size_t count, int type, int op, NcclComm comm,
                       NcclStream stream);
  int (*AllGather)(const void* in, void* out, size_t count, int type, NcclComm comm,
                   NcclStream stream);
  int (*Broadcast)(const void* in, void* out, size_t count, int type, int root, NcclComm comm,
                   NcclStream stream);
  int (*Reduce)(const void* in, void* out, size_t count, int type, int op, int root, NcclComm comm,
                NcclStream stream);
  int (*Send)(const void* data, size_t count, int type, int peer, NcclComm comm, NcclStream stream);
  int (*Recv)(void* data, size_t count, int type, int peer, NcclComm comm, NcclStream stream);
  int (*GroupStart)();
  int (*GroupEnd)();

  int version = 0;
};

// kUnavailable: `name` is not there or is no NCCL. kFailedPrecondition: it is too old, with both
// versions. It then stays in the process. Thread-safe.
absl::StatusOr<NcclLibrary> LoadNccl(const std::string& name);

// "2.21.5".
std::string NcclVersionText(int version);
// "<NCCL's words for the result> (<what it logged last>)".
std::string NcclResultText(const NcclLibrary& nccl, int result, NcclComm comm);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_NCCL_LIBRARY_H_
