#include "plinth/comm/transport/tcp/lane.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "plinth/comm/net/socket.h"

namespace plinth::comm {
namespace {

struct Pair {
  Fd one;
  Fd other;
};

Pair Connected() {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

// Both sides cut the same bytes into parts of their own sizes, over any number of lanes.
TEST(Lane, StripedBytesArriveInOrderHoweverTheyAreCut) {
  std::mt19937 random(3);
  for (const int lanes : {1, 2, 3, 5}) {
    const int64_t total = 6 * kStripeBytes + 12345;
    std::string sent(total, '\0');
    for (char& c : sent) c = static_cast<char>(random());
    std::string received(total, '\0');
    std::vector<Pair> pairs;
    for (int lane = 0; lane < lanes; ++lane) pairs.push_back(Connected());
    std::vector<Lane> out(lanes);
    std::vector<Lane> in(lanes);
    const auto cut = [&](std::vector<Lane>& to, std::string& bytes) {
      int64_t position = 0;
      while (position < total) {
        const int64_t part = std::min<int64_t>(total - position, random() % (kStripeBytes * 2));
        AddStriped(to, position, bytes.data() + position, part);
      }
    };
    cut(out, sent);
    cut(in, received);
    int64_t moved = 0;
    for (int turn = 0; turn < 100000 && moved < total; ++turn) {
      const int lane = static_cast<int>(random() % lanes);
      out[lane].Send(pairs[lane].one.get());
      moved += in[lane].Receive(pairs[lane].other.get());
    }
    EXPECT_EQ(moved, total) << lanes;
    EXPECT_TRUE(sent == received) << lanes;
    for (const Lane& lane : in) EXPECT_FALSE(lane.open());
  }
}

TEST(Lane, BreaksAtTheEndOfWhatTheOtherSideSent) {
  Pair pair = Connected();
  std::string bytes = "abc";
  Lane out;
  out.Add(bytes.data(), 3);
  EXPECT_EQ(out.Send(pair.one.get()), 3);
  pair.one.Reset();
  std::string got(5, '\0');
  Lane in;
  in.Add(got.data(), 5);
  EXPECT_EQ(in.Receive(pair.other.get()), 3);
  EXPECT_FALSE(in.broken());
  EXPECT_EQ(in.Receive(pair.other.get()), 0);
  EXPECT_TRUE(in.broken());
  EXPECT_TRUE(in.open());
  EXPECT_EQ(got.substr(0, 3), "abc");
}

}  // namespace
}  // namespace plinth::comm
