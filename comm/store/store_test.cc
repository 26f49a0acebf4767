#include "plinth/comm/store/store.h"

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/comm/net/socket.h"
#include "plinth/comm/store/store_wire.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::plinth::testing::IsOkAndHolds;
using ::plinth::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Time Soon() { return absl::Now() + absl::Seconds(10); }

int FreePort() { return Listen(0)->port; }

CommOptions Options(int rank, int size, int port) {
  CommOptions options;
  options.rank = options.local_rank = rank;
  options.size = options.local_size = size;
  options.store_port = port;
  return options;
}

TEST(Store, SetGetAndWait) {
  const int port = FreePort();
  ASSERT_OK_AND_ASSIGN(const auto zero, Store::Open(Options(0, 2, port), Soon()));
  ASSERT_OK_AND_ASSIGN(const auto one, Store::Open(Options(1, 2, port), Soon()));
  EXPECT_THAT(one->Get("a", Soon()), StatusIs(absl::StatusCode::kNotFound));
  const std::string bytes("\0\n\xff", 3);
  ASSERT_OK(zero->Set("a", bytes, Soon()));
  EXPECT_THAT(one->Get("a", Soon()), IsOkAndHolds(bytes));
  ASSERT_OK(one->Set("a", "", Soon()));
  EXPECT_THAT(zero->Get("a", Soon()), IsOkAndHolds(""));
  ASSERT_OK(zero->Set("big", std::string(kMaxStoreValueBytes, 'x'), Soon()));
  EXPECT_THAT(one->Get("big", Soon()), IsOkAndHolds(std::string(kMaxStoreValueBytes, 'x')));

  std::thread late([&] {
    absl::SleepFor(absl::Milliseconds(50));
    ASSERT_OK(zero->Set("late", "here", Soon()));
  });
  EXPECT_THAT(one->Wait("late", Soon()), IsOkAndHolds("here"));
  late.join();
  EXPECT_THAT(one->Wait("never", absl::Now() + absl::Milliseconds(30)),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("nobody set never")));
}

TEST(Store, ClientsWaitForALateServer) {
  const int port = FreePort();
  std::thread early([&] {
    ASSERT_OK_AND_ASSIGN(const auto one, Store::Open(Options(1, 2, port), Soon()));
    EXPECT_THAT(one->Wait("k", Soon()), IsOkAndHolds("v"));
  });
  absl::SleepFor(absl::Milliseconds(100));
  ASSERT_OK_AND_ASSIGN(const auto zero, Store::Open(Options(0, 2, port), Soon()));
  ASSERT_OK(zero->Set("k", "v", Soon()));
  early.join();
}

TEST(Store, DeadlineTellsTheLastReason) {
  EXPECT_THAT(Store::Open(Options(1, 2, FreePort()), absl::Now() + absl::Milliseconds(50)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("rank 1 cannot reach rank 0 at 127.0.0.1:"),
                             HasSubstr("Connection refused"))));
  CommOptions options = Options(1, 2, 1234);
  options.store_host = "no-such-host.invalid";
  EXPECT_THAT(Store::Open(options, absl::Now() + absl::Milliseconds(50)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("cannot resolve \"no-such-host.invalid\"")));
}

TEST(Store, KeepsLaunchesApart) {
  const int port = FreePort();
  CommOptions first = Options(0, 2, port);
  first.run_id = "one";
  ASSERT_OK_AND_ASSIGN(const auto zero, Store::Open(first, Soon()));
  EXPECT_THAT(Store::Open(first, Soon()),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr(absl::StrCat("port ", port))));
  CommOptions other = Options(1, 2, port);
  other.run_id = "two";
  EXPECT_THAT(Store::Open(other, Soon()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("belongs to launch \"one\", this rank to \"two\"")));
  other = Options(1, 3, port);
  other.run_id = "one";
  EXPECT_THAT(Store::Open(other, Soon()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("has 2 ranks")));
  other.size = 2;
  ASSERT_OK_AND_ASSIGN(const auto one, Store::Open(other, Soon()));
  EXPECT_THAT(Store::Open(other, Soon()), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                   HasSubstr("a rank 1 has joined already")));
}

// Two launches whose identities give the same port, side by side, started in any order.
TEST(Store, LaunchesWithTheSamePortFindTheirOwn) {
  const int port = FreePort();
  const auto options = [&](int launch, int rank) {
    CommOptions o = Options(rank, 2, port);
    o.store_ports = 8;
    o.run_id = absl::StrCat("launch ", launch);
    return o;
  };
  std::vector<std::thread> ranks;
  for (const int rank : {1, 0}) {
    for (const int launch : {0, 1, 2}) {
      ranks.emplace_back([&, launch, rank] {
        ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(options(launch, rank), Soon()));
        ASSERT_OK(store->Set(absl::StrCat(rank), absl::StrCat("of ", launch), Soon()));
        EXPECT_THAT(store->Wait(absl::StrCat(1 - rank), Soon()),
                    IsOkAndHolds(absl::StrCat("of ", launch)));
        ASSERT_OK(store->Set(absl::StrCat("seen by ", rank), "", Soon()));
        ASSERT_OK(store->Wait(absl::StrCat("seen by ", 1 - rank), Soon()).status());
        // Rank 0 takes the store with it: the other has its last answer by then, or loses it.
        if (rank == 0) absl::SleepFor(absl::Milliseconds(100));
      });
    }
  }
  for (std::thread& rank : ranks) rank.join();

  // Without a rank 0 of its own, a rank tells which launches it met instead.
  ASSERT_OK_AND_ASSIGN(const auto zero, Store::Open(options(0, 0), Soon()));
  EXPECT_THAT(Store::Open(options(7, 1), absl::Now() + absl::Milliseconds(100)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("belongs to launch \"launch 0\", this rank to \"launch 7\"")));
}

TEST(Store, RankZeroTellsThatAllPortsAreTaken) {
  ASSERT_OK_AND_ASSIGN(const Listener first, Listen(0));
  const absl::StatusOr<Listener> second = Listen(first.port + 1);
  if (!second.ok() && !absl::IsAlreadyExists(second.status())) GTEST_FAIL() << second.status();
  CommOptions options = Options(0, 2, first.port);
  options.store_ports = 2;
  EXPECT_THAT(Store::Open(options, Soon()),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr(absl::StrCat("every port from ", first.port, " to ",
                                              first.port + 1, " for the ranks"))));
}

TEST(Store, HostMayBeSeveralNamesOfOneHost) {
  CommOptions options = Options(0, 1, FreePort());
  options.store_host = "no-such-host.invalid,::1,127.0.0.1";
  ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(options, Soon()));
  EXPECT_TRUE(store->local_address().IsLoopback());
}

TEST(Store, RefusesLoopbackAcrossHosts) {
  CommOptions options = Options(0, 4, FreePort());
  options.local_size = 2;
  EXPECT_THAT(Store::Open(options, Soon()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("MASTER_ADDR=127.0.0.1"), HasSubstr("several hosts"))));
  // A name that is loopback is refused where rank 0 is not, whatever the order of ranks.
  for (const int rank : {1, 2, 3}) {
    options.rank = rank;
    options.local_rank = rank / 2;  // dealt out in turn
    options.store_host = "localhost";
    EXPECT_THAT(Store::Open(options, Soon()), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                       HasSubstr("MASTER_ADDR=localhost")));
  }
}

TEST(Store, SurvivesGarbage) {
  const int port = FreePort();
  ASSERT_OK_AND_ASSIGN(const auto zero, Store::Open(Options(0, 2, port), Soon()));
  ASSERT_OK_AND_ASSIGN(const auto addresses, Resolve("127.0.0.1", port));
  const std::string kGarbage[] = {"GET / HTTP/1.1\r\n\r\n", std::string(64, '\xff'),
                                  std::string(9, '\0'), std::string("S\1\0\0\0\1\0\0\0kv", 11)};
  for (const std::string& garbage : kGarbage) {
    ASSERT_OK_AND_ASSIGN(const Fd fd, Connect(addresses.front(), Soon()));
    ASSERT_OK(SendAll(fd, std::as_bytes(std::span<const char>(garbage)), Soon()));
    std::byte byte;
    EXPECT_THAT(ReceiveAll(fd, std::span(&byte, 1), Soon()),
                StatusIs(absl::StatusCode::kUnavailable));  // closed without an answer
  }
  EXPECT_THAT(zero->Get("k", Soon()), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace plinth::comm
