#include "plinth/comm/transport/tcp/connect.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "plinth/comm/call/rank_list.h"
#include "plinth/comm/net/interface.h"
#include "plinth/comm/net/socket.h"
#include "plinth/comm/store/unique_id.h"
#include "plinth/comm/transport/tcp/addresses.h"
#include "plinth/comm/transport/tcp/links.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

// For one address: a host that drops packets must leave time for the next address.
constexpr absl::Duration kAddressLimit = absl::Seconds(3);
// A stray connection that says nothing must not hold up the others for long.
constexpr absl::Duration kGreetingLimit = absl::Seconds(2);
constexpr absl::Duration kFirstPause = absl::Milliseconds(10);
constexpr absl::Duration kLongestPause = absl::Milliseconds(500);
// Data connections to a peer unless options say otherwise: over a network one connection rarely
// gets the whole bandwidth, over loopback a second one only costs.
constexpr int kStreamsBetweenHosts = 4;
constexpr int kStreamsOnOneHost = 1;

constexpr int32_t kControl = -1;

// First bytes on a connection; the accepting side returns `id` to show that it is of the group.
struct Greeting {
  char id[kUniqueIdCharacters];
  int32_t rank;
  int32_t stream;  // of data, or kControl
};

// What rank 0 decides for all.
struct GroupTerms {
  std::string id;
  int streams = 0;
};

struct GroupMember {
  int rank;
  GroupTerms terms;
};

Fd& ConnectionOf(TcpLink& link, int32_t stream) {
  return stream == kControl ? link.control : link.data[stream];
}

bool IsComplete(const TcpLink& link) {
  return link.control.valid() &&
         std::all_of(link.data.begin(), link.data.end(), [](const Fd& fd) { return fd.valid(); });
}

TcpLink EmptyLink(int streams) {
  TcpLink link;
  link.data.resize(streams);
  return link;
}

absl::StatusOr<GroupTerms> AgreeOnTerms(const CommOptions& options, Store& store,
                                        const std::string& prefix, absl::Time deadline) {
  const std::string key = absl::StrCat(prefix, "terms");
  if (options.rank == 0) {
    const bool one_host = options.local_size == options.size;
    const int streams = options.tcp_streams > 0 ? std::min(options.tcp_streams, kMostTcpStreams)
                        : one_host              ? kStreamsOnOneHost
                                                : kStreamsBetweenHosts;
    RETURN_IF_ERROR(store.Set(key, absl::StrCat(MakeUniqueId(), " ", streams), deadline));
  }
  ASSIGN_OR_RETURN(const std::string text, store.Wait(key, deadline));
  GroupTerms terms;
  std::istringstream(text) >> terms.id >> terms.streams;
  if (terms.id.size() != kUniqueIdCharacters || terms.streams < 1 ||
      terms.streams > kMostTcpStreams) {
    return absl::InternalError("tcp: malformed terms of rank 0");
  }
  return terms;
}

// Reads the reply too, so that only a member of the group counts as connected.
absl::StatusOr<Fd> ConnectAndGreet(const SocketAddress& address, const GroupMember& self,
                                   int32_t stream, absl::Time deadline) {
  ASSIGN_OR_RETURN(Fd fd, Connect(address, std::min(deadline, absl::Now() + kAddressLimit)));
  Greeting greeting{};
  const std::string& id = self.terms.id;
  std::memcpy(greeting.id, id.data(), sizeof(greeting.id));
  greeting.rank = self.rank;
  greeting.stream = stream;
  RETURN_IF_ERROR(SendAll(fd, std::as_bytes(std::span(&greeting, 1)), deadline));
  char reply[kUniqueIdCharacters];
  RETURN_IF_ERROR(ReceiveAll(fd, std::as_writable_bytes(std::span(reply)), deadline));
  if (std::memcmp(reply, id.data(), sizeof(reply)) != 0) {
    return absl::UnavailableError(
        absl::StrCat(address.ToString(), ": what listens there is not of this group"));
  }
  return fd;
}

absl::StatusOr<TcpLink> ConnectAll(const SocketAddress& address, const GroupMember& self,
                                   absl::Time deadline) {
  TcpLink link = EmptyLink(self.terms.streams);
  for (int32_t stream = kControl; stream < self.terms.streams; ++stream) {
    ASSIGN_OR_RETURN(ConnectionOf(link, stream), ConnectAndGreet(address, self, stream, deadline));
  }
  return link;
}

// One attempt at every address of the notice "port host host ...".
absl::StatusOr<TcpLink> TryAddresses(const std::string& notice, const GroupMember& self,
                                     absl::Time deadline) {
  std::istringstream in(notice);
  int port = 0;
  in >> port;
  std::vector<std::string> tried;
  for (std::string host; in >> host;) {
    const absl::StatusOr<std::vector<SocketAddress>> addresses = Resolve(host, port);
    if (!addresses.ok() || addresses->empty()) continue;
    absl::StatusOr<TcpLink> link = ConnectAll(addresses->front(), self, deadline);
    if (link.ok()) return link;
    tried.push_back(std::string(link.status().message()));
  }
  return absl::UnavailableError(tried.empty() ? "it offers no address that is known here"
                                              : absl::StrJoin(tried, "; "));
}

absl::StatusOr<TcpLink> ConnectTo(int peer, const std::string& notice, const GroupMember& self,
                                  absl::Time deadline) {
  absl::Duration pause = kFirstPause;
  while (true) {
    absl::StatusOr<TcpLink> link = TryAddresses(notice, self, deadline);
    if (link.ok()) return link;
    if (absl::Now() + pause >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat("rank ", self.rank, " cannot reach rank ",
                                                      peer, ": ", link.status().message()));
    }
    absl::SleepFor(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

// Takes one connection; a stray one is dropped without a word.
absl::Status AcceptOne(const Listener& listener, const GroupMember& self,
                       std::vector<TcpLink>& links, absl::Time deadline) {
  ASSIGN_OR_RETURN(Fd fd, Accept(listener.fd, deadline));
  Greeting greeting{};
  const std::string& id = self.terms.id;
  const absl::Time patience = std::min(deadline, absl::Now() + kGreetingLimit);
  const absl::Status read =
      ReceiveAll(fd, std::as_writable_bytes(std::span(&greeting, 1)), patience);
  if (!read.ok() || std::memcmp(greeting.id, id.data(), sizeof(greeting.id)) != 0 ||
      greeting.rank <= self.rank || greeting.rank >= static_cast<int>(links.size()) ||
      greeting.stream < kControl || greeting.stream >= self.terms.streams) {
    return absl::OkStatus();
  }
  const absl::Status replied = SendAll(fd, std::as_bytes(std::span<const char>(id)), patience);
  // A peer that tried one of our addresses and gave up comes again: its latest one counts.
  if (replied.ok()) ConnectionOf(links[greeting.rank], greeting.stream) = std::move(fd);
  return absl::OkStatus();
}

absl::Status AcceptHigher(const Listener& listener, const GroupMember& self,
                          const CommOptions& options, std::vector<TcpLink>& links,
                          absl::Time deadline) {
  while (true) {
    std::vector<int> missing;
    for (int peer = self.rank + 1; peer < options.size; ++peer) {
      if (!IsComplete(links[peer])) missing.push_back(peer);
    }
    if (missing.empty()) return absl::OkStatus();
    const absl::Status status = AcceptOne(listener, self, links, deadline);
    if (absl::IsDeadlineExceeded(status)) {
      return absl::DeadlineExceededError(
          absl::StrCat(RankList(missing), " did not connect to rank ", self.rank, " within ",
                       absl::FormatDuration(options.timeout)));
    }
    RETURN_IF_ERROR(status);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> ConnectTcp(const CommOptions& options, Store& store,
                                                      absl::Time deadline) {
  ASSIGN_OR_RETURN(const OfferedAddresses offered,
                   ChooseAddresses(options, store.local_address(), ListInterfaces()));
  const std::string prefix = absl::StrCat(options.group, "/tcp/");
  ASSIGN_OR_RETURN(GroupTerms terms, AgreeOnTerms(options, store, prefix, deadline));
  const GroupMember self{options.rank, std::move(terms)};

  ASSIGN_OR_RETURN(const Listener listener, Listen(0));
  const std::string notice = absl::StrCat(listener.port, " ", absl::StrJoin(offered.hosts, " "));
  RETURN_IF_ERROR(store.Set(absl::StrCat(prefix, options.rank), notice, deadline));

  std::vector<TcpLink> links(options.size);
  for (int peer = 0; peer < options.rank; ++peer) {
    ASSIGN_OR_RETURN(const std::string peer_notice,
                     store.Wait(absl::StrCat(prefix, peer), deadline));
    ASSIGN_OR_RETURN(links[peer], ConnectTo(peer, peer_notice, self, deadline));
  }
  for (int peer = options.rank + 1; peer < options.size; ++peer) {
    links[peer] = EmptyLink(self.terms.streams);
  }
  RETURN_IF_ERROR(AcceptHigher(listener, self, options, links, deadline));
  const std::string choice =
      absl::StrCat(offered.why, "; ", self.terms.streams, " data connections to each rank");
  return TcpLinks::Make(options.rank, std::move(links), choice, options.timeout);
}

}  // namespace plinth::comm
