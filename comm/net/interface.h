// Network interfaces of this machine, and which of them to use.
#ifndef PLINTH_COMM_NET_INTERFACE_H_
#define PLINTH_COMM_NET_INTERFACE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "plinth/comm/net/socket.h"

namespace plinth::comm {

// One address of one interface that is up.
struct InterfaceAddress {
  std::string name;       // "eth0"
  SocketAddress address;  // port 0
};

// In the system's order, link-local addresses left out.
std::vector<InterfaceAddress> ListInterfaces();

// "lo (127.0.0.1, ::1), eth0 (10.0.0.7)"
std::string DescribeInterfaces(std::span<const InterfaceAddress> interfaces);

// Those that `pattern` chooses, in the order of the pattern's items and then of the system.
// Items are separated by commas:
//   eth0          the interface of this name
//   eth*          names that begin so
//   10.0.0.0/8    addresses in this network, IPv4 or IPv6
//   ^docker*      not these, whichever kind of item follows; a pattern of nothing else chooses
//                 all but loopback from the rest
// kInvalidArgument when an item is malformed, kNotFound when nothing is chosen; both say what
// there is.
absl::StatusOr<std::vector<InterfaceAddress>> ChooseInterfaces(
    std::string_view pattern, std::span<const InterfaceAddress> interfaces);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_NET_INTERFACE_H_
