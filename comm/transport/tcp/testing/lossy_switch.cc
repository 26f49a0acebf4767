#include "plinth/comm/transport/tcp/testing/lossy_switch.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"
#include "plinth/hardware/base/check.h"

namespace plinth::comm::testing {
namespace {

constexpr int kLongestPollMs = 50;  // after this long it sees that it is to end
constexpr size_t kMostFrameBytes = 65536;
constexpr size_t kMacBytes = 6;

Fd OpenPort(const std::string& device) {
  Fd fd(socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL)));
  CHECK(fd.valid()) << std::strerror(errno);
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(if_nametoindex(device.c_str()));
  CHECK_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

}  // namespace

LossySwitch::LossySwitch(const std::vector<std::string>& devices, absl::Duration delay, double loss)
    : delay_(delay), drops_(loss) {
  for (const std::string& device : devices) ports_.push_back(OpenPort(device));
  thread_ = std::thread([this] { Work(); });
}

LossySwitch::~LossySwitch() {
  ending_ = true;
  thread_.join();
}

void LossySwitch::Work() {
  std::vector<pollfd> entries;
  for (const Fd& port : ports_) entries.push_back({.fd = port.get(), .events = POLLIN});
  while (!ending_) {
    const absl::Time next = held_.empty() ? absl::InfiniteFuture() : held_.front().due;
    const int wait = PollMilliseconds(next, kLongestPollMs);
    if (poll(entries.data(), entries.size(), wait) > 0) {
      for (size_t port = 0; port < ports_.size(); ++port) {
        if (entries[port].revents != 0) Take(port);
      }
    }
    while (!held_.empty() && held_.front().due <= absl::Now()) {
      Deliver(held_.front());
      held_.pop_front();
    }
  }
}

void LossySwitch::Take(size_t port) {
  std::string frame(kMostFrameBytes, '\0');
  sockaddr_ll from{};
  socklen_t length = sizeof(from);
  const ssize_t got = recvfrom(ports_[port].get(), frame.data(), frame.size(), 0,
                               reinterpret_cast<sockaddr*>(&from), &length);
  // What this switch itself sent comes by as well.
  if (got < static_cast<ssize_t>(2 * kMacBytes) || from.sll_pkttype == PACKET_OUTGOING) return;
  frame.resize(static_cast<size_t>(got));
  MacAddress source;
  std::memcpy(source.data(), frame.data() + kMacBytes, kMacBytes);
  port_of_[source] = port;
  if (!drops_(random_)) held_.push_back({absl::Now() + delay_, port, std::move(frame)});
}

void LossySwitch::Deliver(const Held& held) {
  MacAddress target;
  std::memcpy(target.data(), held.frame.data(), kMacBytes);
  const auto known = port_of_.find(target);
  for (size_t port = 0; port < ports_.size(); ++port) {
    if (port == held.from || (known != port_of_.end() && known->second != port)) continue;
    // A cable that is cut, or a full queue, loses the frame, as they do.
    [[maybe_unused]] const ssize_t sent =
        send(ports_[port].get(), held.frame.data(), held.frame.size(), MSG_DONTWAIT);
  }
}

}  // namespace plinth::comm::testing
