#include "plinth/comm/transport/mpi/library.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plinth/comm/transport/shared_library.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr int kMostTextBytes = 256;  // of MPI's error texts and version, in OpenMPI

void FindFunctions(SharedLibrary& library, MpiLibrary& mpi) {
  library.Find("MPI_Get_library_version", &mpi.Get_library_version);
  library.Find("MPI_Initialized", &mpi.Initialized);
  library.Find("MPI_Finalized", &mpi.Finalized);
  library.Find("MPI_Init_thread", &mpi.Init_thread);
  library.Find("MPI_Query_thread", &mpi.Query_thread);
  library.Find("MPI_Finalize", &mpi.Finalize);
  library.Find("MPI_Error_string", &mpi.Error_string);
  library.Find("MPI_Comm_rank", &mpi.Comm_rank);
  library.Find("MPI_Comm_size", &mpi.Comm_size);
  library.Find("MPI_Comm_group", &mpi.Comm_group);
  library.Find("MPI_Comm_create_group", &mpi.Comm_create_group);
  library.Find("MPI_Comm_set_errhandler", &mpi.Comm_set_errhandler);
  library.Find("MPI_Group_incl", &mpi.Group_incl);
  library.Find("MPI_Group_free", &mpi.Group_free);
  library.Find("MPI_Isend", &mpi.Isend);
  library.Find("MPI_Improbe", &mpi.Improbe);
  library.Find("MPI_Imrecv", &mpi.Imrecv);
  library.Find("MPI_Test", &mpi.Test);
  library.Find("MPI_Sendrecv", &mpi.Sendrecv);
  library.Find("MPI_Barrier", &mpi.Barrier);
  library.Find("MPI_Bcast", &mpi.Bcast);
  library.Find("MPI_Reduce", &mpi.Reduce);
  library.Find("MPI_Allreduce", &mpi.Allreduce);
  library.Find("MPI_Reduce_scatter_block", &mpi.Reduce_scatter_block);
  library.Find("MPI_Allgather", &mpi.Allgather);
  library.Find("MPI_Gather", &mpi.Gather);
  library.Find("MPI_Scatter", &mpi.Scatter);
  library.Find("MPI_Alltoall", &mpi.Alltoall);
}

void FindHandles(SharedLibrary& library, MpiLibrary& mpi) {
  library.Find("ompi_mpi_comm_world", &mpi.world);
  library.Find("ompi_mpi_errors_return", &mpi.errors_return);
  library.Find("ompi_mpi_byte", &mpi.byte);
  library.Find("ompi_mpi_int8_t", &mpi.i8);
  library.Find("ompi_mpi_uint8_t", &mpi.u8);
  library.Find("ompi_mpi_int32_t", &mpi.i32);
  library.Find("ompi_mpi_uint32_t", &mpi.u32);
  library.Find("ompi_mpi_int64_t", &mpi.i64);
  library.Find("ompi_mpi_uint64_t", &mpi.u64);
  library.Find("ompi_mpi_float", &mpi.f32);
  library.Find("ompi_mpi_double", &mpi.f64);
  library.Find("ompi_mpi_op_sum", &mpi.sum);
  library.Find("ompi_mpi_op_prod", &mpi.prod);
  library.Find("ompi_mpi_op_max", &mpi.max);
  library.Find("ompi_mpi_op_min", &mpi.min);
}

// MPI runs once in a process and cannot be started again: the one thing here that is global,
// because it is so in MPI.
class ProcessMpi {
 public:
  static ProcessMpi& Get() {
    static ProcessMpi process;
    return process;
  }

  absl::Status Start(const MpiLibrary& mpi) {
    std::lock_guard lock(mutex_);
    int up = 0;
    int ended = 0;
    RETURN_IF_ERROR(MpiResult(mpi, mpi.Finalized(&ended), "ask whether it has ended"));
    if (ended != 0) return absl::FailedPreconditionError("mpi: it has ended in this process");
    RETURN_IF_ERROR(MpiResult(mpi, mpi.Initialized(&up), "ask whether it runs"));
    int threads = 0;
    if (up != 0) {
      RETURN_IF_ERROR(MpiResult(mpi, mpi.Query_thread(&threads), "ask for its threads"));
    } else {
      const int code = mpi.Init_thread(nullptr, nullptr, kMpiThreadMultiple, &threads);
      RETURN_IF_ERROR(MpiResult(mpi, code, "start"));
      finalize_ = mpi.Finalize;
    }
    if (threads < kMpiThreadMultiple) {
      return absl::FailedPreconditionError(absl::StrCat("mpi: it runs with thread level ", threads,
                                                        ", Plinth needs ", kMpiThreadMultiple,
                                                        " (MPI_THREAD_MULTIPLE)"));
    }
    return MpiResult(mpi, mpi.Comm_set_errhandler(mpi.world, mpi.errors_return),
                     "have errors returned");
  }

  void Abandon() { abandoned_.store(true); }

 private:
  ProcessMpi() = default;
  ~ProcessMpi() {
    if (finalize_ != nullptr && !abandoned_.load()) finalize_();
  }

  std::mutex mutex_;  // guards what follows
  int (*finalize_)() = nullptr;
  std::atomic<bool> abandoned_ = false;
};

}  // namespace

absl::StatusOr<MpiLibrary> LoadMpi(const std::string& name) {
  SharedLibrary library;
  // Global: its own plug-ins look its symbols up.
  if (const absl::Status status = library.Load(name, /*global=*/true); !status.ok()) {
    return absl::UnavailableError(
        absl::StrCat("mpi: ", std::string(status.message()),
                     ": install OpenMPI, Debian's packages openmpi-bin and libopenmpi3"));
  }
  MpiLibrary mpi{};
  FindFunctions(library, mpi);
  FindHandles(library, mpi);
  if (!library.missing().empty()) {
    return absl::UnavailableError(
        absl::StrCat("mpi: ", name, " is not OpenMPI 3 or later: it lacks ", library.missing()));
  }
  char text[kMostTextBytes + 1] = {};
  int length = 0;
  RETURN_IF_ERROR(MpiResult(mpi, mpi.Get_library_version(text, &length), "ask for its version"));
  mpi.version.assign(text, std::clamp(length, 0, kMostTextBytes));
  if (!absl::StartsWith(mpi.version, "Open MPI")) {
    return absl::UnavailableError(absl::StrCat(
        "mpi: ", name, " is ", mpi.version, ", of which only OpenMPI's interface is known here"));
  }
  return mpi;
}

absl::Status StartMpi(const MpiLibrary& mpi) { return ProcessMpi::Get().Start(mpi); }

void AbandonMpi() { ProcessMpi::Get().Abandon(); }

absl::Status MpiResult(const MpiLibrary& mpi, int code, const std::string& what) {
  if (code == kMpiSuccess) return absl::OkStatus();
  char text[kMostTextBytes + 1] = {};
  int length = 0;
  if (mpi.Error_string(code, text, &length) != kMpiSuccess) text[0] = '\0';
  return absl::UnavailableError(absl::StrCat("mpi: cannot ", what, ": ", text));
}

}  // namespace plinth::comm
