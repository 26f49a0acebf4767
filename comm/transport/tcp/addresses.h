// Which of this host's addresses a rank offers to the others.
#ifndef PLINTH_COMM_TRANSPORT_TCP_ADDRESSES_H_
#define PLINTH_COMM_TRANSPORT_TCP_ADDRESSES_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plinth/comm/net/interface.h"
#include "plinth/comm/net/socket.h"
#include "plinth/comm/rendezvous/options.h"

namespace plinth::comm {

struct OfferedAddresses {
  std::vector<std::string> hosts;  // numeric, to be tried in this order; at least one
  std::string why;                 // "eth0 (10.0.0.7): the route to rank 0"
};

// What options.interfaces asks for; else loopback when all ranks are on one host; else the address
// by which this rank reaches rank 0 (`route`); and where that is a loopback address, as it may be
// on rank 0's own host, every other address. kInvalidArgument or kNotFound lists the interfaces
// that there are.
absl::StatusOr<OfferedAddresses> ChooseAddresses(const CommOptions& options,
                                                 const SocketAddress& route,
                                                 std::span<const InterfaceAddress> interfaces);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_TCP_ADDRESSES_H_
