#include "plinth/comm/transport/tcp/connect.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/comm/testing/ranks.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Time Soon() { return absl::Now() + absl::Seconds(20); }

// Runs `body` for each rank of a group, in a thread of its own.
void RunGroup(int size, int streams, const std::function<void(Transport&)>& body) {
  const int port = testing::FreePort();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      CommOptions options =
          testing::LocalOptions(rank, size, port, TransportKind::kTcp, absl::Seconds(20));
      // Rank 0's wish counts, whatever the others say.
      options.tcp_streams = rank == 0 ? streams : 1;
      ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(options, Soon()));
      ASSERT_OK_AND_ASSIGN(std::unique_ptr<Transport> transport,
                           ConnectTcp(options, *store, Soon()));
      EXPECT_THAT(transport->Explain(), HasSubstr(absl::StrCat(streams, " data connections")));
      body(*transport);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::string NoteOf(int rank, size_t bytes) {
  return std::string(bytes, static_cast<char>('a' + rank));
}

TEST(Tcp, NotesOfAnySizeReachEveryRankBetweenExchanges) {
  // Around what a frame's first part holds, and the longest.
  constexpr size_t kSizes[] = {0, 1, 251, 252, 253, 1000, kMostNoteBytes};
  for (const int streams : {1, 3}) {
    RunGroup(3, streams, [&](Transport& transport) {
      std::vector<std::span<const std::byte>> notes;
      const int rank = transport.rank();
      for (int round = 0; round < 14; ++round) {
        const auto size_of = [&](int r) { return kSizes[(round + 3 * r) % 7]; };
        const std::string own = NoteOf(rank, size_of(rank));
        ASSERT_FALSE(transport.Announce(std::as_bytes(std::span<const char>(own)), notes, Soon()));
        for (int r = 0; r < 3; ++r) {
          ASSERT_EQ(std::string(reinterpret_cast<const char*>(notes[r].data()), notes[r].size()),
                    NoteOf(r, size_of(r)));
        }
        // A message right behind, whose bytes must not be taken for a note.
        int32_t out[2] = {rank, round};
        int32_t in[2] = {-1, -1};
        const SendPart send{(rank + 1) % 3, out, sizeof(out)};
        const ReceivePart receive{(rank + 2) % 3, in, sizeof(in)};
        ASSERT_FALSE(transport.Exchange({&send, 1}, {&receive, 1}, Soon()));
        ASSERT_EQ(in[0], (rank + 2) % 3);
        ASSERT_EQ(in[1], round);
      }
    });
  }
}

TEST(Tcp, LargePartsArriveWholeAndAreCounted) {
  constexpr int64_t kBytes = 3'000'001;
  for (const int streams : {1, 2, 5}) {
    RunGroup(2, streams, [&](Transport& transport) {
      const int rank = transport.rank();
      std::vector<unsigned char> out(kBytes);
      std::vector<unsigned char> in(kBytes, 0);
      for (int64_t i = 0; i < kBytes; ++i) out[i] = static_cast<unsigned char>(i * 7 + rank);
      for (int round = 0; round < 3; ++round) {
        // One side sends in two parts what the other receives in three.
        const SendPart sends[] = {{1 - rank, out.data(), 700'000},
                                  {1 - rank, out.data() + 700'000, kBytes - 700'000}};
        const ReceivePart receives[] = {{1 - rank, in.data(), 5},
                                        {1 - rank, in.data() + 5, 0},
                                        {1 - rank, in.data() + 5, kBytes - 5}};
        ASSERT_FALSE(transport.Exchange(sends, receives, Soon()));
        for (int64_t i = 0; i < kBytes; ++i) {
          ASSERT_EQ(in[i], static_cast<unsigned char>(i * 7 + 1 - rank)) << i;
        }
      }
      EXPECT_EQ(transport.bytes_moved(), (ByteCounts{3 * kBytes, 3 * kBytes}));
    });
  }
}

// All the notes that it waits for are there, and so is the word that nobody waits any more.
TEST(Tcp, ARankThatComesAfterTheOthersGaveUpIsTold) {
  std::atomic<int> gave_up = 0;
  RunGroup(3, 1, [&](Transport& transport) {
    std::vector<std::span<const std::byte>> notes;
    const bool late = transport.rank() == 1;
    while (late && gave_up < 2) absl::SleepFor(absl::Milliseconds(1));
    const auto failure =
        transport.Announce({}, notes, late ? Soon() : absl::Now() + absl::Milliseconds(50));
    ASSERT_TRUE(failure.has_value());
    if (failure->kind == PeerFailure::Kind::kLate) transport.Abort("1 is late");
    if (late) EXPECT_EQ(failure->detail, "1 is late");
    ++gave_up;
    while (gave_up < 3) absl::SleepFor(absl::Milliseconds(1));
  });
}

TEST(Tcp, AnAbortByAnotherThreadEndsAWaitAtOnce) {
  RunGroup(2, 1, [](Transport& transport) {
    if (transport.rank() == 1) return absl::SleepFor(absl::Milliseconds(1500));
    absl::Time aborted_at;
    std::thread other([&] {
      absl::SleepFor(absl::Milliseconds(100));
      aborted_at = absl::Now();
      transport.Abort("enough");
    });
    std::vector<std::span<const std::byte>> notes;
    const auto failure = transport.Announce({}, notes, Soon());
    const absl::Time ended_at = absl::Now();
    other.join();
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->kind, PeerFailure::Kind::kAborted);
    EXPECT_THAT(failure->ranks, ElementsAre(0));
    EXPECT_LT(ended_at - aborted_at, absl::Milliseconds(300));
  });
}

TEST(Tcp, ALateALeftAndAnAbortingRankAreTold) {
  RunGroup(3, 1, [](Transport& transport) {
    std::vector<std::span<const std::byte>> notes;
    ASSERT_FALSE(transport.Announce({}, notes, Soon()));
    if (transport.rank() == 2) {
      absl::SleepFor(absl::Seconds(1));
      return;
    }
    const auto late = transport.Announce({}, notes, absl::Now() + absl::Milliseconds(300));
    ASSERT_TRUE(late.has_value());
    EXPECT_EQ(late->kind, PeerFailure::Kind::kLate);
    EXPECT_THAT(late->ranks, ElementsAre(2));
  });
  RunGroup(3, 2, [](Transport& transport) {
    std::vector<std::span<const std::byte>> notes;
    if (transport.rank() == 1) return;  // leaves
    const auto left = transport.Announce({}, notes, Soon());
    ASSERT_TRUE(left.has_value());
    if (left->kind == PeerFailure::Kind::kAborted) {
      EXPECT_EQ(left->detail, "1 left");
      return;
    }
    EXPECT_EQ(left->kind, PeerFailure::Kind::kLeft);
    EXPECT_THAT(left->ranks, ElementsAre(1));
    transport.Abort("1 left");
    absl::SleepFor(absl::Milliseconds(100));
  });
}

}  // namespace
}  // namespace plinth::comm
