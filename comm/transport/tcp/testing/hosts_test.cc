// Collectives between hosts: network namespaces with a cable each. Skipped where the system does
// not let this process make them.
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/comm/collective/communicator.h"
#include "plinth/comm/store/store.h"
#include "plinth/comm/testing/collective_cases.h"
#include "plinth/comm/testing/ranks.h"
#include "plinth/comm/transport/tcp/connect.h"
#include "plinth/comm/transport/tcp/testing/host_network.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {
namespace {

using ::plinth::comm::testing::CheckAllCollectives;
using ::plinth::comm::testing::CheckHostNetwork;
using ::plinth::comm::testing::CheckLargeAllReduce;
using ::plinth::comm::testing::CutCable;
using ::plinth::comm::testing::HostAddress;
using ::plinth::comm::testing::HostNetworkOptions;
using ::plinth::comm::testing::RankOutcome;
using ::plinth::comm::testing::RunHosts;
using ::plinth::comm::testing::RunProcesses;
using ::testing::HasSubstr;

class Hosts : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::Status status = CheckHostNetwork();
    if (!status.ok()) GTEST_SKIP() << status;
  }
};

CommOptions RankOf(int host, const HostNetworkOptions& network, absl::Duration timeout) {
  CommOptions options;
  options.rank = host;
  options.size = network.hosts;
  options.store_host = HostAddress(0, network.ipv4);
  options.store_port = 29500;
  options.timeout = timeout;
  return options;
}

std::string CheckCollectives(const CommOptions& options) {
  constexpr int64_t kCounts[] = {0, 1, 7};
  constexpr int64_t kLarge[] = {300001};  // larger than a stripe for each connection
  constexpr DType kDTypes[] = {DType::kF32};
  const auto comm = Communicator::Create(options);
  if (!comm.ok()) return comm.status().ToString();
  if ((*comm)->transport_name() != "tcp") return "not over tcp";
  const std::string failure = CheckAllCollectives(**comm, kCounts, kDTypes);
  return failure.empty() ? CheckLargeAllReduce(**comm, kLarge) : failure;
}

TEST_F(Hosts, FourAgreeOnEveryCollective) {
  const HostNetworkOptions network{.hosts = 4};
  for (const RankOutcome& outcome : RunHosts(network, [&](int host) {
         return CheckCollectives(RankOf(host, network, absl::Seconds(20)));
       })) {
    EXPECT_EQ(outcome.report, "");
  }
}

TEST_F(Hosts, DelayAndLossOnlyCostTime) {
  const HostNetworkOptions network{.hosts = 4, .delay = absl::Milliseconds(2), .loss = 0.01};
  for (const RankOutcome& outcome : RunHosts(network, [&](int host) -> std::string {
         const auto comm = Communicator::Create(RankOf(host, network, absl::Seconds(20)));
         if (!comm.ok()) return comm.status().ToString();
         constexpr int64_t kLarge[] = {100001};
         return CheckLargeAllReduce(**comm, kLarge);
       })) {
    EXPECT_EQ(outcome.report, "");
  }
}

TEST_F(Hosts, TwoMeetByIpv6Alone) {
  const HostNetworkOptions network{.hosts = 2, .ipv4 = false};
  for (const RankOutcome& outcome : RunHosts(network, [&](int host) {
         return CheckCollectives(RankOf(host, network, absl::Seconds(20)));
       })) {
    EXPECT_EQ(outcome.report, "");
  }
}

// Several ranks on one host that has no IPv4 address, not even on loopback.
TEST_F(Hosts, RanksOfOneHostMeetByIpv6Loopback) {
  const HostNetworkOptions network{.hosts = 1, .ipv4 = false};
  const auto outcomes = RunHosts(network, [&](int) {
    std::string reports;
    for (const RankOutcome& outcome : RunProcesses(3, [](int rank) {
           CommOptions options =
               testing::LocalOptions(rank, 3, 29500, TransportKind::kTcp, absl::Seconds(20));
           options.store_host = "::1";
           return CheckCollectives(options);
         })) {
      reports += outcome.report;
    }
    return reports;
  });
  EXPECT_EQ(outcomes[0].report, "");
}

TEST_F(Hosts, TheRouteToRankZeroIsChosenAndAWrongNameTellsWhatThereIs) {
  const HostNetworkOptions network{.hosts = 2};
  const auto outcomes = RunHosts(network, [&](int host) -> std::string {
    CommOptions options = RankOf(host, network, absl::Seconds(20));
    const absl::Time deadline = absl::Now() + options.timeout;
    const auto store = Store::Open(options, deadline);
    if (!store.ok()) return store.status().ToString();
    const auto transport = ConnectTcp(options, **store, deadline);
    if (!transport.ok()) return transport.status().ToString();
    options.interfaces = "ib*";
    return absl::StrCat((*transport)->Explain(), "\n",
                        ConnectTcp(options, **store, deadline).status().message());
  });
  for (int host = 0; host < 2; ++host) {
    EXPECT_EQ(outcomes[host].report,
              absl::StrCat("eth0 (", HostAddress(host),
                           "): the route to rank 0; 4 data connections to each rank\n"
                           "PLINTH_SOCKET_IFNAME: \"ib*\" chooses no interface; there is lo "
                           "(127.0.0.1, ::1), eth0 (",
                           HostAddress(host), ", ", HostAddress(host, false), ")"));
  }
}

TEST_F(Hosts, LoopbackIsRefusedBetweenHosts) {
  const HostNetworkOptions network{.hosts = 2};
  for (const RankOutcome& outcome : RunHosts(network, [&](int host) -> std::string {
         CommOptions options = RankOf(host, network, absl::Seconds(5));
         options.store_host = "localhost";
         return Communicator::Create(options).status().ToString();
       })) {
    EXPECT_THAT(outcome.report, HasSubstr("MASTER_ADDR=localhost is the loopback address"));
  }
}

// While data moves, a cable is pulled. Nobody gets a goodbye.
TEST_F(Hosts, ACutCableNamesTheRightRankOnEveryRank) {
  const absl::Duration timeout = absl::Seconds(3);
  for (const int cut : {0, 2}) {
    const HostNetworkOptions network{.hosts = 4};
    int under_way[2];  // a byte from each rank once its group stands
    ASSERT_EQ(pipe(under_way), 0);
    const auto outcomes = RunHosts(
        network,
        [&](int host) -> std::string {
          const auto comm = Communicator::Create(RankOf(host, network, timeout));
          if (!comm.ok()) return comm.status().ToString();
          if (write(under_way[1], "u", 1) != 1) return "no pipe";
          std::vector<float> values(200000);
          while (true) {
            const absl::Time start = absl::Now();
            const absl::Status status = (*comm)->AllReduce(BufferOf(std::span<float>(values)));
            const int64_t ms = absl::ToInt64Milliseconds(absl::Now() - start);
            if (!status.ok()) return absl::StrCat(ms, " ms: ", status.ToString());
          }
        },
        [&] {
          char byte;
          for (int rank = 0; rank < network.hosts; ++rank) {
            if (read(under_way[0], &byte, 1) != 1) return;
          }
          absl::SleepFor(absl::Milliseconds(200));
          CutCable(cut);
        });
    close(under_way[0]);
    close(under_way[1]);
    for (int host = 0; host < 4; ++host) {
      const std::string& report = outcomes[host].report;
      EXPECT_THAT(report, HasSubstr(absl::StrCat("rank ", cut, " did not "))) << "rank " << host;
      EXPECT_LE(std::atoi(report.c_str()), absl::ToInt64Milliseconds(timeout) + 1000) << report;
      EXPECT_THAT(report, HasSubstr(host == cut ? "cut off, no other host answers"
                                                : "its host does not answer"));
    }
  }
}

}  // namespace
}  // namespace plinth::comm
