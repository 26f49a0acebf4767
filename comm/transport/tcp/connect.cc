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
#include "plinth/comm/net/socket.h"
#include "plinth/comm/rendezvous/unique_id.h"
#include "plinth/comm/transport/tcp/mesh.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

// For one address: a host that drops packets must leave time for the next address.
constexpr absl::Duration kAddressLimit = absl::Seconds(3);
// A stray connection that says nothing must not hold up the others for long.
constexpr absl::Duration kGreetingLimit = absl::Seconds(2);

// First bytes on a connection; the accepting side returns `id` to show that it is of the group.
struct Greeting {
  char id[kUniqueIdCharacters];
  int32_t rank;
  int32_t is_control;
};

// Reads the reply too, so that only a member of the group counts as connected.
absl::StatusOr<Fd> ConnectAndGreet(const SocketAddress& address, const std::string& id, int rank,
                                   bool is_control, absl::Time deadline) {
  ASSIGN_OR_RETURN(Fd fd, Connect(address, std::min(deadline, absl::Now() + kAddressLimit)));
  Greeting greeting{};
  std::memcpy(greeting.id, id.data(), sizeof(greeting.id));
  greeting.rank = rank;
  greeting.is_control = is_control ? 1 : 0;
  RETURN_IF_ERROR(SendAll(fd, std::as_bytes(std::span(&greeting, 1)), deadline));
  char reply[kUniqueIdCharacters];
  RETURN_IF_ERROR(ReceiveAll(fd, std::as_writable_bytes(std::span(reply)), deadline));
  if (std::memcmp(reply, id.data(), sizeof(reply)) != 0) {
    return absl::UnavailableError(
        absl::StrCat(address.ToString(), ": what listens there is not of this group"));
  }
  return fd;
}

absl::StatusOr<TcpLink> ConnectTo(int peer, const std::string& notice, const std::string& id,
                                  int rank, absl::Time deadline) {
  std::istringstream in(notice);
  int port = 0;
  in >> port;
  std::vector<std::string> tried;
  for (std::string host; in >> host;) {
    const absl::StatusOr<std::vector<SocketAddress>> addresses = Resolve(host, port);
    if (!addresses.ok() || addresses->empty()) continue;
    absl::StatusOr<Fd> data = ConnectAndGreet(addresses->front(), id, rank, false, deadline);
    absl::StatusOr<Fd> control =
        data.ok() ? ConnectAndGreet(addresses->front(), id, rank, true, deadline) : data.status();
    if (control.ok()) return TcpLink{*std::move(data), *std::move(control)};
    tried.push_back(std::string(control.status().message()));
  }
  return absl::UnavailableError(absl::StrCat(
      "rank ", rank, " cannot reach rank ", peer, ": ",
      tried.empty() ? "it has no usable network interface" : absl::StrJoin(tried, "; ")));
}

// Takes one connection; a stray one is dropped without a word.
absl::Status AcceptOne(const Listener& listener, const std::string& id, int rank,
                       std::vector<TcpLink>& links, absl::Time deadline) {
  ASSIGN_OR_RETURN(Fd fd, Accept(listener.fd, deadline));
  Greeting greeting{};
  const absl::Time patience = std::min(deadline, absl::Now() + kGreetingLimit);
  const absl::Status read =
      ReceiveAll(fd, std::as_writable_bytes(std::span(&greeting, 1)), patience);
  if (!read.ok() || std::memcmp(greeting.id, id.data(), sizeof(greeting.id)) != 0 ||
      greeting.rank <= rank || greeting.rank >= static_cast<int>(links.size())) {
    return absl::OkStatus();
  }
  const absl::Status replied = SendAll(fd, std::as_bytes(std::span<const char>(id)), patience);
  // A peer that tried one of our addresses and gave up comes again: its latest one counts.
  TcpLink& link = links[greeting.rank];
  if (replied.ok()) (greeting.is_control != 0 ? link.control : link.data) = std::move(fd);
  return absl::OkStatus();
}

std::vector<int> MissingAbove(int rank, const std::vector<TcpLink>& links) {
  std::vector<int> missing;
  for (int peer = rank + 1; peer < static_cast<int>(links.size()); ++peer) {
    if (!links[peer].data.valid() || !links[peer].control.valid()) missing.push_back(peer);
  }
  return missing;
}

absl::Status AcceptHigher(const Listener& listener, const std::string& id,
                          const CommOptions& options, std::vector<TcpLink>& links,
                          absl::Time deadline) {
  while (true) {
    const std::vector<int> missing = MissingAbove(options.rank, links);
    if (missing.empty()) return absl::OkStatus();
    const absl::Status status = AcceptOne(listener, id, options.rank, links, deadline);
    if (absl::IsDeadlineExceeded(status)) {
      return absl::DeadlineExceededError(
          absl::StrCat(missing.size() == 1 ? "rank " : "ranks ", absl::StrJoin(missing, ", "),
                       " did not connect to rank ", options.rank, " within ",
                       absl::FormatDuration(options.timeout)));
    }
    RETURN_IF_ERROR(status);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> ConnectTcp(const CommOptions& options, Store& store,
                                                      absl::Time deadline) {
  const std::string prefix = absl::StrCat(options.group, "/tcp/");
  const std::string id_key = absl::StrCat(prefix, "id");
  if (options.rank == 0) RETURN_IF_ERROR(store.Set(id_key, MakeUniqueId(), deadline));
  ASSIGN_OR_RETURN(const std::string id, store.Wait(id_key, deadline));
  if (id.size() != kUniqueIdCharacters) return absl::InternalError("tcp: malformed group id");

  ASSIGN_OR_RETURN(const Listener listener, Listen(0));
  const bool one_host = options.local_size == options.size;
  const std::string notice =
      absl::StrCat(listener.port, " ", absl::StrJoin(InterfaceAddresses(one_host), " "));
  RETURN_IF_ERROR(store.Set(absl::StrCat(prefix, options.rank), notice, deadline));

  std::vector<TcpLink> links(options.size);
  for (int peer = 0; peer < options.rank; ++peer) {
    ASSIGN_OR_RETURN(const std::string peer_notice,
                     store.Wait(absl::StrCat(prefix, peer), deadline));
    ASSIGN_OR_RETURN(links[peer], ConnectTo(peer, peer_notice, id, options.rank, deadline));
  }
  RETURN_IF_ERROR(AcceptHigher(listener, id, options, links, deadline));
  return std::make_unique<TcpMesh>(options.rank, std::move(links));
}

}  // namespace plinth::comm
