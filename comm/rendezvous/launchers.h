// How each launcher tells a process which rank it is and where the ranks meet.
//
// The launchers, in the order in which one that started another comes after it:
//
//   torchrun     RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT, all six.
//                TORCHELASTIC_USE_AGENT_STORE=True: the launcher itself listens on MASTER_PORT,
//                so the next port is used. TORCHELASTIC_RUN_ID tells launches apart.
//   openmpi      OMPI_COMM_WORLD_RANK _SIZE _LOCAL_RANK _LOCAL_SIZE. Over several hosts rank 0 is
//                taken to be on mpirun's own host, whose addresses OMPI_MCA_orte_hnp_uri lists.
//   slurm        SLURM_PROCID SLURM_LOCALID SLURM_NODEID of a step (SLURM_STEP_ID is set by srun,
//                not in a batch script), SLURM_STEP_NUM_TASKS (or SLURM_NTASKS),
//                SLURM_STEP_TASKS_PER_NODE (or SLURM_TASKS_PER_NODE), SLURM_STEP_NODELIST (or
//                SLURM_JOB_NODELIST): rank 0 is on the first node of the list.
//   kubernetes   JOB_COMPLETION_INDEX of an Indexed Job, one rank in each pod; PLINTH_WORLD_SIZE;
//                PLINTH_SERVICE, the headless service by which the pod of index 0 is found, and
//                HOSTNAME, which is the job's name and the index.
//
// openmpi, slurm and kubernetes take MASTER_ADDR and MASTER_PORT instead when both are set. When
// they are not, ranks meet at a port that follows from the launch's identity, and at one of the
// next kDerivedPorts - 1 when another launch has it.
#ifndef PLINTH_COMM_RENDEZVOUS_LAUNCHERS_H_
#define PLINTH_COMM_RENDEZVOUS_LAUNCHERS_H_

#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "plinth/comm/rendezvous/environment_values.h"
#include "plinth/comm/rendezvous/options.h"

namespace plinth::comm {

inline constexpr int kDerivedPorts = 16;

struct Launcher {
  const char* name;
  // Whether it started this process, as far as its variables tell.
  bool (*started)(const EnvironmentValues& values);
  // Name of the variable that holds the number of ranks.
  const char* (*size_variable)(const EnvironmentValues& values);
  // Fills rank, size, local_rank, local_size, store_host, store_port, store_ports and run_id.
  // kInvalidArgument, in one line that names the variables, when some are missing, malformed or
  // contradict each other.
  absl::Status (*read)(const EnvironmentValues& values, CommOptions& options);
};

// In order of precedence.
std::span<const Launcher> Launchers();

// Where a launch meets: from 20000 on, below the ports that systems hand out by themselves.
int DerivedPort(std::string_view launch_identity);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_RENDEZVOUS_LAUNCHERS_H_
