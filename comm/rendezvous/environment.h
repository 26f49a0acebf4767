// CommOptions from the environment in which a launcher started this process.
//
// The first of torchrun, openmpi, slurm and kubernetes whose variables are there is taken
// (launchers.h tells which variables and how ranks meet); none is a world of one. Beside them:
//
//   PLINTH_LAUNCHER        torchrun, openmpi, slurm, kubernetes or none: this one, not the first
//   PLINTH_RUN_ID          tells launches apart that meet at one port
//   PLINTH_TRANSPORT       auto, shm, tcp, mpi or nccl
//   PLINTH_SOCKET_IFNAME   interfaces of the tcp transport, see net/interface.h
//   PLINTH_TCP_STREAMS     connections for data between two ranks, 1 to 16
//   PLINTH_NCCL_LIBRARY    file name of NCCL, libnccl.so.2 by default
//   PLINTH_COMM_ALGORITHM  "ring", or "all_reduce=ring:16,broadcast=double_tree"
//   PLINTH_COMM_TUNING     files of measured tables, by commas, that algorithms are chosen by
//   PLINTH_COMM_TIMEOUT    "60s", "5m"
#ifndef PLINTH_COMM_RENDEZVOUS_ENVIRONMENT_H_
#define PLINTH_COMM_RENDEZVOUS_ENVIRONMENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "plinth/comm/rendezvous/environment_values.h"
#include "plinth/comm/rendezvous/options.h"

namespace plinth::comm {

// kInvalidArgument, in one line that names the variables, when some of the launcher's are
// missing, malformed or contradict each other, or when another launcher started more processes
// than the world that was found has ranks: the sign of variables left over in a shell.
absl::StatusOr<CommOptions> OptionsFromEnvironment(const EnvironmentLookup& lookup);
// The same from this process's environment.
absl::StatusOr<CommOptions> OptionsFromEnvironment();

// In one line: the launcher, the rank's place, where ranks meet and as which launch.
std::string ExplainOptions(const CommOptions& options);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_RENDEZVOUS_ENVIRONMENT_H_
