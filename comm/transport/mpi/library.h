// OpenMPI, loaded when asked for: no MPI is needed to build a program, or to start one that does
// not ask.
//
// What is declared here is OpenMPI's binary interface (libmpi.so.40, of releases 3 to 5): handles
// are addresses of objects inside the library. Other implementations differ and are refused.
#ifndef PLINTH_COMM_TRANSPORT_MPI_LIBRARY_H_
#define PLINTH_COMM_TRANSPORT_MPI_LIBRARY_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace plinth::comm {

using MpiComm = void*;
using MpiGroup = void*;
using MpiDatatype = void*;
using MpiOp = void*;
using MpiRequest = void*;
using MpiMessage = void*;
using MpiErrorHandler = void*;

struct MpiStatus {
  int source = 0;
  int tag = 0;
  int error = 0;
  int cancelled = 0;
  size_t bytes = 0;
};

inline constexpr int kMpiSuccess = 0;
inline constexpr int kMpiAnySource = -1;
inline constexpr int kMpiThreadMultiple = 3;
// As the send buffer: the data is where the result goes.
inline void* const kMpiInPlace = reinterpret_cast<void*>(1);

// The functions and handles that Plinth uses, with MPI's names and arguments. Thread-safe once MPI
// runs with kMpiThreadMultiple (StartMpi).
struct MpiLibrary {
  int (*Get_library_version)(char* text, int* length);
  int (*Initialized)(int* flag);
  int (*Finalized)(int* flag);
  int (*Init_thread)(int* argc, char*** argv, int required, int* provided);
  int (*Query_thread)(int* provided);
  int (*Finalize)();
  int (*Error_string)(int code, char* text, int* length);

  int (*Comm_rank)(MpiComm comm, int* rank);
  int (*Comm_size)(MpiComm comm, int* size);
  int (*Comm_group)(MpiComm comm, MpiGroup* group);
  int (*Comm_create_group)(MpiComm comm, MpiGroup group, int tag, MpiComm* made);
  int (*Comm_set_errhandler)(MpiComm comm, MpiErrorHandler handler);
  int (*Group_incl)(MpiGroup group, int count, const int* ranks, MpiGroup* made);
  int (*Group_free)(MpiGroup* group);

  int (*Isend)(const void* data, int count, MpiDatatype type, int peer, int tag, MpiComm comm,
               MpiRequest* request);
  int (*Improbe)(int peer, int tag, MpiComm comm, int* flag, MpiMessage* message,
                 MpiStatus* status);
  int (*Imrecv)(void* data, int count, MpiDatatype type, MpiMessage* message, MpiRequest* request);
  int (*Test)(MpiRequest* request, int* flag, MpiStatus* status);

  int (*Sendrecv)(const void* in, int in_count, MpiDatatype in_type, int to, int in_tag, void* out,
                  int out_count, MpiDatatype out_type, int from, int out_tag, MpiComm comm,
                  MpiStatus* status);

  int (*Barrier)(MpiComm comm);
  int (*Bcast)(void* data, int count, MpiDatatype type, int root, MpiComm comm);
  int (*Reduce)(const void* in, void* out, int count, MpiDatatype type, MpiOp op, int root,
                MpiComm comm);
  int (*Allreduce)(const void* in, void* out, int count, MpiDatatype type, MpiOp op, MpiComm comm);
  int (*Reduce_scatter_block)(const void* in, void* out, int count, MpiDatatype type, MpiOp op,
                              MpiComm comm);
  int (*Allgather)(const void* in, int in_count, MpiDatatype in_type, void* out, int out_count,
                   MpiDatatype out_type, MpiComm comm);
  int (*Gather)(const void* in, int in_count, MpiDatatype in_type, void* out, int out_count,
                MpiDatatype out_type, int root, MpiComm comm);
  int (*Scatter)(const void* in, int in_count, MpiDatatype in_type, void* out, int out_count,
                 MpiDatatype out_type, int root, MpiComm comm);
  int (*Alltoall)(const void* in, int in_count, MpiDatatype in_type, void* out, int out_count,
                  MpiDatatype out_type, MpiComm comm);

  MpiComm world;
  MpiErrorHandler errors_return;  // calls return their error instead of ending the process
  MpiDatatype byte, i8, u8, i32, u32, i64, u64, f32, f64;
  MpiOp sum, prod, max, min;

  std::string version;  // "Open MPI v4.1.4, ..."
};

// Loads `name`, which then stays in the process. kUnavailable: it is not there (the message names
// the Debian package that brings it), or is not OpenMPI. Does not start MPI. Thread-safe.
absl::StatusOr<MpiLibrary> LoadMpi(const std::string& name = "libmpi.so.40");

// Starts MPI in this process, for use by any thread, unless it runs already; it then ends with the
// process, which waits for all ranks of the job to end. Errors of MPI calls on the world's
// communicator are returned from here on. kFailedPrecondition: it was started for fewer threads,
// or has ended. Thread-safe.
absl::Status StartMpi(const MpiLibrary& mpi);

// From now on the process ends without waiting for the other ranks, of which one is broken. To
// mpirun that is a failure: it ends the job.
void AbandonMpi();

// OK for kMpiSuccess, else "mpi: cannot <what>: <MPI's words>" (kUnavailable).
absl::Status MpiResult(const MpiLibrary& mpi, int code, const std::string& what);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_MPI_LIBRARY_H_
