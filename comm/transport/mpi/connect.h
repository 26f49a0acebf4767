// The group whose ranks mpirun (or srun) started as one job of OpenMPI: it brings the network that
// MPI knows, say a fabric with its own library, and what moves is messages of MPI.
//
// What MPI does not allow: forming a group waits for all ranks of the job inside MPI_Init, without
// a deadline, and a rank that dies makes mpirun end the whole job before others can report it.
// Late ranks, aborts and ranks that leave are reported as on other transports. After an error the
// process ends without MPI_Finalize, which could wait for ever, so mpirun ends the job then too.
// A transfer that had begun when a call failed still uses the caller's buffer: do not free it
// while other groups over MPI go on.
#ifndef PLINTH_COMM_TRANSPORT_MPI_CONNECT_H_
#define PLINTH_COMM_TRANSPORT_MPI_CONNECT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plinth/comm/rendezvous/options.h"
#include "plinth/comm/store/store.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

// Called by every rank. Starts MPI when it does not run. kUnavailable: a rank has no OpenMPI, with
// the packages to install. kFailedPrecondition: MPI's world is not that of `options`.
// kDeadlineExceeded names the rank that did not come. `library` is for tests.
absl::StatusOr<std::unique_ptr<Transport>> ConnectMpi(const CommOptions& options, Store& store,
                                                      absl::Time deadline,
                                                      const std::string& library = "libmpi.so.40");

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_MPI_CONNECT_H_
