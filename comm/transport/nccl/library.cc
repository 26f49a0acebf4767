#include "plinth/comm/transport/nccl/library.h"

#include "absl/strings/str_cat.h"
#include "plinth/comm/transport/shared_library.h"

namespace plinth::comm {
namespace {

void FindFunctions(SharedLibrary& library, NcclLibrary& nccl) {
  library.Find("ncclGetUniqueId", &nccl.GetUniqueId);
  library.Find("ncclGetErrorString", &nccl.GetErrorString);
  library.Find("ncclGetLastError", &nccl.GetLastError);
  library.Find("ncclCommInitRankConfig", &nccl.CommInitRankConfig);
  library.Find("ncclCommGetAsyncError", &nccl.CommGetAsyncError);
  library.Find("ncclCommFinalize", &nccl.CommFinalize);
  library.Find("ncclCommDestroy", &nccl.CommDestroy);
  library.Find("ncclCommAbort", &nccl.CommAbort);
  library.Find("ncclAllReduce", &nccl.AllReduce);
  library.Find("ncclReduceScatter", &nccl.ReduceScatter);
  library.Find("ncclAllGather", &nccl.AllGather);
  library.Find("ncclBroadcast", &nccl.Broadcast);
  library.Find("ncclReduce", &nccl.Reduce);
  library.Find("ncclSend", &nccl.Send);
  library.Find("ncclRecv", &nccl.Recv);
  library.Find("ncclGroupStart", &nccl.GroupStart);
  library.Find("ncclGroupEnd", &nccl.GroupEnd);
}

}  // namespace

absl::StatusOr<NcclLibrary> LoadNccl(const std::string& name) {
  SharedLibrary library;
  if (const absl::Status status = library.Load(name); !status.ok()) {
    return absl::UnavailableError(
        absl::StrCat("nccl: ", std::string(status.message()),
                     ": install NVIDIA's NCCL (package libnccl2, or "
                     "nvidia-nccl-cu12 of PyPI), or name it in PLINTH_NCCL_LIBRARY"));
  }
  NcclLibrary nccl{};
  library.Find("ncclGetVersion", &nccl.GetVersion);
  if (nccl.GetVersion == nullptr || nccl.GetVersion(&nccl.version) != kNcclSuccess) {
    return absl::UnavailableError(absl::StrCat("nccl: ", name, " tells no version of NCCL"));
  }
  if (nccl.version < kLeastNcclVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("nccl: ", name, " is version ", NcclVersionText(nccl.version), ", want ",
                     NcclVersionText(kLeastNcclVersion), " or later"));
  }
  FindFunctions(library, nccl);
  if (!library.missing().empty()) {
    return absl::UnavailableError(absl::StrCat("nccl: ", name, " lacks ", library.missing()));
  }
  return nccl;
}

std::string NcclVersionText(int version) {
  // Up to 2.8 the numbers were major * 1000 + minor * 100 + patch.
  const int major = version < 10000 ? version / 1000 : version / 10000;
  const int rest = version < 10000 ? version % 1000 : version % 10000;
  return absl::StrCat(major, ".", rest / 100, ".", rest % 100);
}

std::string NcclResultText(const NcclLibrary& nccl, int result, NcclComm comm) {
  const char* last = nccl.GetLastError(comm);
  std::string text = nccl.GetErrorString(result);
  if (last != nullptr && last[0] != '\0') absl::StrAppend(&text, " (", last, ")");
  return text;
}

}  // namespace plinth::comm
