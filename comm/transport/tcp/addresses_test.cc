#include "plinth/comm/transport/tcp/addresses.h"

#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

SocketAddress Address(const char* host) { return Resolve(host, 0).value().front(); }

std::vector<InterfaceAddress> Machine() {
  return {{"lo", Address("127.0.0.1")},
          {"lo", Address("::1")},
          {"eth0", Address("10.0.0.7")},
          {"eth1", Address("192.168.7.5")}};
}

CommOptions FourOf(int size) {
  CommOptions options;
  options.local_size = 4;
  options.size = size;
  return options;
}

TEST(Addresses, OneHostMeetsByLoopback) {
  ASSERT_OK_AND_ASSIGN(const OfferedAddresses offered,
                       ChooseAddresses(FourOf(4), Address("127.0.0.1"), Machine()));
  EXPECT_THAT(offered.hosts, ElementsAre("127.0.0.1", "::1"));
  EXPECT_EQ(offered.why, "lo (127.0.0.1, ::1): all ranks are on this host");
}

TEST(Addresses, SeveralHostsMeetByTheRouteToRankZero) {
  ASSERT_OK_AND_ASSIGN(OfferedAddresses offered,
                       ChooseAddresses(FourOf(8), Address("192.168.7.5"), Machine()));
  EXPECT_THAT(offered.hosts, ElementsAre("192.168.7.5"));
  EXPECT_EQ(offered.why, "eth1 (192.168.7.5): the route to rank 0");

  // Rank 0 itself, whose name leads to loopback on its own host: never offered to others.
  ASSERT_OK_AND_ASSIGN(offered, ChooseAddresses(FourOf(8), Address("127.0.1.1"), Machine()));
  EXPECT_THAT(offered.hosts, ElementsAre("10.0.0.7", "192.168.7.5"));
  EXPECT_EQ(offered.why,
            "eth0 (10.0.0.7), eth1 (192.168.7.5): all, since this rank reaches rank 0 by "
            "127.0.1.1");
}

TEST(Addresses, WhatIsAskedForComesFirst) {
  CommOptions options = FourOf(8);
  options.interfaces = "eth0";
  ASSERT_OK_AND_ASSIGN(const OfferedAddresses offered,
                       ChooseAddresses(options, Address("192.168.7.5"), Machine()));
  EXPECT_THAT(offered.hosts, ElementsAre("10.0.0.7"));
  EXPECT_EQ(offered.why, "eth0 (10.0.0.7): asked for as eth0");

  options.interfaces = "ib0";
  EXPECT_THAT(ChooseAddresses(options, Address("192.168.7.5"), Machine()),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("PLINTH_SOCKET_IFNAME: \"ib0\" chooses no interface; there is lo "
                                 "(127.0.0.1, ::1), eth0 (10.0.0.7), eth1 (192.168.7.5)")));
}

TEST(Addresses, AHostThatNobodyCanReachSaysSo) {
  std::vector<InterfaceAddress> alone = Machine();
  alone.resize(2);
  EXPECT_THAT(ChooseAddresses(FourOf(8), Address("127.0.0.1"), alone),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("there is lo (127.0.0.1, ::1)")));
}

}  // namespace
}  // namespace plinth::comm
