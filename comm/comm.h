// All that a user of //comm includes: Communicator, CommOptions and where they come from.
//
//   ASSIGN_OR_RETURN(plinth::comm::CommOptions options, plinth::comm::OptionsFromEnvironment());
//   ASSIGN_OR_RETURN(auto comm, plinth::comm::Communicator::Create(options));
#ifndef PLINTH_COMM_COMM_H_
#define PLINTH_COMM_COMM_H_

#include "plinth/comm/call/buffer.h"              // IWYU pragma: export
#include "plinth/comm/call/call.h"                // IWYU pragma: export
#include "plinth/comm/collective/communicator.h"  // IWYU pragma: export
#include "plinth/comm/reduce/reduce.h"            // IWYU pragma: export
#include "plinth/comm/rendezvous/environment.h"   // IWYU pragma: export
#include "plinth/comm/rendezvous/options.h"       // IWYU pragma: export
#include "plinth/comm/store/store.h"              // IWYU pragma: export

#endif  // PLINTH_COMM_COMM_H_
