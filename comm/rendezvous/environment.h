// CommOptions from the variables that torchrun and compatible launchers set.
//
//   RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT   all six, or none
//   TORCHELASTIC_RUN_ID or PLINTH_RUN_ID    optional: tells launches apart
//   TORCHELASTIC_USE_AGENT_STORE=True       the launcher itself listens on MASTER_PORT, so the
//                                           next port is used
//   PLINTH_TRANSPORT                        optional: auto, shm or tcp
//   PLINTH_COMM_TIMEOUT                     optional: "60s", "5m"
#ifndef PLINTH_COMM_RENDEZVOUS_ENVIRONMENT_H_
#define PLINTH_COMM_RENDEZVOUS_ENVIRONMENT_H_

#include <functional>

#include "absl/status/statusor.h"
#include "plinth/comm/rendezvous/options.h"

namespace plinth::comm {

// Value of a variable, or null when it is not set; the shape of std::getenv.
using EnvironmentLookup = std::function<const char*(const char* name)>;

// A world of one when none of the six is set. kInvalidArgument, in one line that names the
// variables, when some are missing, malformed or contradict each other.
absl::StatusOr<CommOptions> OptionsFromEnvironment(const EnvironmentLookup& lookup);
// The same from this process's environment.
absl::StatusOr<CommOptions> OptionsFromEnvironment();

}  // namespace plinth::comm

#endif  // PLINTH_COMM_RENDEZVOUS_ENVIRONMENT_H_
