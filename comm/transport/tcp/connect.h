// The group whose ranks are anywhere: a full mesh of TCP connections.
//
// Every rank listens on a port of its own and publishes, through the store, that port and the
// addresses it offers (addresses.h); of each two ranks the higher one connects, and tries again
// with growing pauses while it cannot. A greeting with the group's random id keeps other launches
// and foreign programs out.
#ifndef PLINTH_COMM_TRANSPORT_TCP_CONNECT_H_
#define PLINTH_COMM_TRANSPORT_TCP_CONNECT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plinth/comm/rendezvous/options.h"
#include "plinth/comm/store/store.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

// Called by every rank. kDeadlineExceeded names the rank that did not come or could not be
// reached, with every address tried; kInvalidArgument and kNotFound are of ChooseAddresses. The
// transport's Explain tells the interfaces and the number of connections.
absl::StatusOr<std::unique_ptr<Transport>> ConnectTcp(const CommOptions& options, Store& store,
                                                      absl::Time deadline);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_TCP_CONNECT_H_
