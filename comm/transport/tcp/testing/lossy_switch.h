// An Ethernet switch in user space that delays and drops frames, for tests.
#ifndef PLINTH_COMM_TRANSPORT_TCP_TESTING_LOSSY_SWITCH_H_
#define PLINTH_COMM_TRANSPORT_TCP_TESTING_LOSSY_SWITCH_H_

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "plinth/comm/net/socket.h"

namespace plinth::comm::testing {

// Works from its own thread until destroyed. Learns addresses as real switches do.
class LossySwitch {
 public:
  // `devices` are interfaces of this network namespace that are up. Every frame is held for
  // `delay`; a share of `loss` of them, the same ones in each run, is dropped. CHECKs that it may
  // open packet sockets.
  LossySwitch(const std::vector<std::string>& devices, absl::Duration delay, double loss);
  ~LossySwitch();

 private:
  using MacAddress = std::array<unsigned char, 6>;
  struct Held {
    absl::Time due;
    size_t from;  // port
    std::string frame;
  };
  void Work();
  void Take(size_t port);
  void Deliver(const Held& held);

  std::vector<Fd> ports_;
  const absl::Duration delay_;
  std::mt19937 random_{1};
  std::bernoulli_distribution drops_;
  std::deque<Held> held_;  // by due time
  std::map<MacAddress, size_t> port_of_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;  // last: ends before what it uses
};

}  // namespace plinth::comm::testing

#endif  // PLINTH_COMM_TRANSPORT_TCP_TESTING_LOSSY_SWITCH_H_
