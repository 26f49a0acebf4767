#include "plinth/comm/transport/tcp/addresses.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

template <typename Predicate>
std::vector<InterfaceAddress> Those(std::span<const InterfaceAddress> interfaces,
                                    const Predicate& wanted) {
  std::vector<InterfaceAddress> chosen;
  std::copy_if(interfaces.begin(), interfaces.end(), std::back_inserter(chosen), wanted);
  return chosen;
}

OfferedAddresses Offer(std::span<const InterfaceAddress> chosen, const std::string& why) {
  OfferedAddresses offered;
  for (const InterfaceAddress& interface : chosen) {
    offered.hosts.push_back(interface.address.Host());
  }
  offered.why = absl::StrCat(DescribeInterfaces(chosen), ": ", why);
  return offered;
}

}  // namespace

absl::StatusOr<OfferedAddresses> ChooseAddresses(const CommOptions& options,
                                                 const SocketAddress& route,
                                                 std::span<const InterfaceAddress> interfaces) {
  if (!options.interfaces.empty()) {
    ASSIGN_OR_RETURN(const std::vector<InterfaceAddress> chosen,
                     ChooseInterfaces(options.interfaces, interfaces), _ << "PLINTH_SOCKET_IFNAME");
    return Offer(chosen, absl::StrCat("asked for as ", options.interfaces));
  }
  const auto is_loopback = [](const InterfaceAddress& i) { return i.address.IsLoopback(); };
  if (options.local_size == options.size) {
    const std::vector<InterfaceAddress> loopback = Those(interfaces, is_loopback);
    if (!loopback.empty()) return Offer(loopback, "all ranks are on this host");
  }
  const std::string host = route.Host();
  if (!route.IsLoopback()) {
    const auto on_route = [&](const InterfaceAddress& i) { return i.address.Host() == host; };
    const std::vector<InterfaceAddress> chosen = Those(interfaces, on_route);
    if (!chosen.empty()) return Offer(chosen, "the route to rank 0");
  }
  const std::vector<InterfaceAddress> others =
      Those(interfaces, [&](const InterfaceAddress& i) { return !is_loopback(i); });
  if (others.empty()) {
    return absl::NotFoundError(absl::StrCat("no interface that other hosts can reach; there is ",
                                            DescribeInterfaces(interfaces)));
  }
  return Offer(others, absl::StrCat("all, since this rank reaches rank 0 by ", host));
}

}  // namespace plinth::comm
