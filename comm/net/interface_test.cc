#include "plinth/comm/net/interface.h"

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

InterfaceAddress At(const char* name, const char* host) {
  return {name, Resolve(host, 0).value().front()};
}

std::vector<InterfaceAddress> Machine() {
  return {At("lo", "127.0.0.1"),       At("eth0", "10.0.0.7"), At("eth10", "192.168.7.5"),
          At("docker0", "172.17.0.1"), At("lo", "::1"),        At("eth0", "fd00::7")};
}

std::string Chosen(const char* pattern) {
  const auto chosen = ChooseInterfaces(pattern, Machine());
  if (!chosen.ok()) return chosen.status().ToString();
  std::vector<std::string> hosts;
  for (const InterfaceAddress& interface : *chosen) hosts.push_back(interface.address.Host());
  return absl::StrJoin(hosts, " ");
}

TEST(Interfaces, OnePatternForAllWishes) {
  EXPECT_EQ(Chosen("eth0"), "10.0.0.7 fd00::7");
  EXPECT_EQ(Chosen("eth1*"), "192.168.7.5");
  EXPECT_EQ(Chosen("eth*"), "10.0.0.7 192.168.7.5 fd00::7");
  EXPECT_EQ(Chosen("docker0,eth0"), "172.17.0.1 10.0.0.7 fd00::7");
  EXPECT_EQ(Chosen("10.0.0.0/8"), "10.0.0.7");
  EXPECT_EQ(Chosen("fd00::/16"), "fd00::7");
  EXPECT_EQ(Chosen("0.0.0.0/0"), "127.0.0.1 10.0.0.7 192.168.7.5 172.17.0.1");
  EXPECT_EQ(Chosen("lo"), "127.0.0.1 ::1");
  EXPECT_EQ(Chosen("^docker*"), "10.0.0.7 192.168.7.5 fd00::7");
  EXPECT_EQ(Chosen("^docker0,^fd00::/16,^eth10"), "10.0.0.7");
  EXPECT_EQ(Chosen("eth*,^192.168.0.0/16"), "10.0.0.7 fd00::7");
}

TEST(Interfaces, WrongOnesListWhatThereIs) {
  constexpr char kThereIs[] =
      "; there is lo (127.0.0.1, ::1), eth0 (10.0.0.7, fd00::7), eth10 (192.168.7.5), docker0 "
      "(172.17.0.1)";
  for (const char* pattern : {"eth1", "10.0.0.8/29", "10.1.0.0/16", "eth0,^eth*", "^*"}) {
    EXPECT_THAT(ChooseInterfaces(pattern, Machine()),
                StatusIs(absl::StatusCode::kNotFound,
                         AllOf(HasSubstr("chooses no interface"), HasSubstr(kThereIs))))
        << pattern;
  }
  for (const char* pattern :
       {"", "eth0,", "^", "e*h", "eth0/8", "10.0.0.0/33", "fd00::/129", "10.0.0.0/x", "^^eth0"}) {
    EXPECT_THAT(ChooseInterfaces(pattern, Machine()),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(kThereIs)))
        << pattern;
  }
}

TEST(Interfaces, ThisMachineHasLoopback) {
  bool loopback = false;
  for (const InterfaceAddress& interface : ListInterfaces()) {
    loopback |= interface.address.IsLoopback();
  }
  EXPECT_TRUE(loopback);
}

}  // namespace
}  // namespace plinth::comm
