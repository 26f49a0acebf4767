// Hosts for tests: network namespaces, each with one cable to a switch.
//
//   host 0: eth0 10.77.0.1, fd77::1 ──veth── s0 ┐
//   host 1: eth0 10.77.0.2, fd77::2 ──veth── s1 ┼ bridge, or a switch in this process that
//   ...                                         ┘ delays and drops frames
//
// Everything lives in namespaces of its own and ends with the processes; nothing gets a name that
// could leak. The delay and the loss are made here because many kernels lack netem.
#ifndef PLINTH_COMM_TRANSPORT_TCP_TESTING_HOST_NETWORK_H_
#define PLINTH_COMM_TRANSPORT_TCP_TESTING_HOST_NETWORK_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "plinth/comm/testing/ranks.h"

namespace plinth::comm::testing {

struct HostNetworkOptions {
  int hosts = 2;
  bool ipv4 = true;                             // else IPv6 alone, on loopback as well
  absl::Duration delay = absl::ZeroDuration();  // of every frame
  double loss = 0;                              // of frames, 0 to 1
};

// OK when this process may make namespaces and cables and has the tool `ip`; else why not, for
// a test to skip.
absl::Status CheckHostNetwork();

// Runs `body(host)` in a process on each host, and `meanwhile` in this one, which may cut cables.
// Call it while no other thread runs.
std::vector<RankOutcome> RunHosts(
    const HostNetworkOptions& options, const std::function<std::string(int host)>& body,
    const std::function<void()>& meanwhile = [] {});

// Pulls the cable of `host` at the switch. For use in `meanwhile`.
void CutCable(int host);

// "10.77.0.1" or "fd77::1"
std::string HostAddress(int host, bool ipv4 = true);

}  // namespace plinth::comm::testing

#endif  // PLINTH_COMM_TRANSPORT_TCP_TESTING_HOST_NETWORK_H_
