#include "plinth/comm/store/store.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "plinth/comm/store/store_server.h"
#include "plinth/comm/store/store_wire.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(2);
constexpr absl::Duration kLongestPause = absl::Milliseconds(500);
// For one attempt; the next one may find another address or a host that is up by then.
constexpr absl::Duration kAttemptLimit = absl::Seconds(5);
// The same where more ports are to be tried: what is no store may take a connection and be silent.
constexpr absl::Duration kPortLimit = absl::Seconds(1);
constexpr absl::Duration kLastAskGrace = absl::Seconds(1);

// Sleeps for `pause`, but not past `deadline`, and doubles it up to `longest`.
void Pause(absl::Duration& pause, absl::Duration longest, absl::Time deadline) {
  absl::SleepFor(std::max(absl::ZeroDuration(), std::min(pause, deadline - absl::Now())));
  pause = std::min(pause * 2, longest);
}

absl::StatusOr<StoreAnswer> Call(const Fd& fd, StoreOp op, std::string_view key,
                                 std::string_view value, absl::Time deadline) {
  const std::string request = EncodeRequest(op, key, value);
  RETURN_IF_ERROR(SendAll(fd, std::as_bytes(std::span<const char>(request)), deadline));
  char header[kReplyHeaderBytes];
  RETURN_IF_ERROR(ReceiveAll(fd, std::as_writable_bytes(std::span(header)), deadline));
  const size_t bytes = ReadU32(header + 1);
  if (bytes > kMaxStoreValueBytes || static_cast<uint8_t>(header[0]) > kLastStoreReply) {
    return absl::FailedPreconditionError("what listens there is not a Plinth store");
  }
  std::string text(bytes, '\0');
  RETURN_IF_ERROR(ReceiveAll(fd, std::as_writable_bytes(std::span<char>(text)), deadline));
  return StoreAnswer{static_cast<StoreReply>(header[0]), std::move(text)};
}

bool IsLoopbackName(const std::string& host) {
  return host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
}

// On rank 0's own host a name may well resolve to loopback; elsewhere it leads to the wrong
// machine. A rank that has ranks below it on other hosts may be elsewhere.
absl::Status CheckReachable(const CommOptions& options,
                            const std::vector<SocketAddress>& addresses) {
  if (options.local_size >= options.size) return absl::OkStatus();
  const bool other_host = options.rank != options.local_rank;
  const bool all_loopback = std::all_of(addresses.begin(), addresses.end(),
                                        [](const SocketAddress& a) { return a.IsLoopback(); });
  if (!IsLoopbackName(options.store_host) && !(other_host && all_loopback)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "MASTER_ADDR=", options.store_host, " is the loopback address ", addresses.front().ToString(),
      " here, but ", options.size, " ranks with ", options.local_size,
      " per host are on several hosts: set MASTER_ADDR to an address of rank 0's host that the ",
      "others can reach"));
}

// Addresses of all names in the comma-separated `hosts`; an error when none is known.
absl::StatusOr<std::vector<SocketAddress>> ResolveAny(const std::string& hosts, int port) {
  std::vector<SocketAddress> addresses;
  absl::Status last = absl::UnavailableError("no host is named");
  const std::vector<std::string> names = absl::StrSplit(hosts, ',', absl::SkipEmpty());
  for (const std::string& host : names) {
    const absl::StatusOr<std::vector<SocketAddress>> found = Resolve(host, port);
    if (found.ok()) {
      addresses.insert(addresses.end(), found->begin(), found->end());
    } else {
      last = found.status();
    }
  }
  if (addresses.empty()) return last;
  return addresses;
}

}  // namespace

Store::Store() = default;
Store::~Store() = default;

absl::StatusOr<std::unique_ptr<Store>> Store::Open(const CommOptions& asked, absl::Time deadline) {
  std::unique_ptr<Store> store(new Store);
  CommOptions options = asked;
  if (options.rank == 0 && options.store_socket >= 0) {
    Listener held{Fd(options.store_socket), options.store_port};
    ASSIGN_OR_RETURN(store->server_,
                     StoreServer::StartOn(std::move(held), options.size, options.run_id));
  } else if (options.rank == 0) {
    ASSIGN_OR_RETURN(store->server_, StoreServer::Start(options.store_port, options.store_ports,
                                                        options.size, options.run_id));
    options.store_port = store->server_->port();
    options.store_ports = 1;
  }
  RETURN_IF_ERROR(store->ConnectWithRetries(options, deadline));
  return store;
}

absl::Status Store::ConnectWithRetries(const CommOptions& options, absl::Time deadline) {
  const absl::Time start = absl::Now();
  absl::Duration pause = kFirstPause;
  absl::Status reason;
  while (true) {
    const absl::Status status = ConnectOnce(options, deadline);
    if (status.ok() || absl::IsFailedPrecondition(status)) return status;
    // That another launch was met tells more than what the last attempt had no time for.
    if (!absl::IsAborted(reason)) reason = status;
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrFormat(
          "rank %d cannot reach rank 0 at %s:%d within %s: %s", options.rank, options.store_host,
          options.store_port,
          absl::FormatDuration(absl::Trunc(absl::Now() - start, absl::Milliseconds(100))),
          std::string(reason.message())));
    }
    Pause(pause, kLongestPause, deadline);
  }
}

absl::Status Store::ConnectOnce(const CommOptions& options, absl::Time deadline) {
  absl::Status last = absl::UnavailableError("no address");
  for (int port = options.store_port; port < options.store_port + options.store_ports; ++port) {
    ASSIGN_OR_RETURN(const std::vector<SocketAddress> addresses,
                     ResolveAny(options.store_host, port));
    RETURN_IF_ERROR(CheckReachable(options, addresses));
    for (const SocketAddress& address : addresses) {
      const absl::Duration limit = options.store_ports > 1 ? kPortLimit : kAttemptLimit;
      const absl::Status status = Greet(options, address, std::min(deadline, absl::Now() + limit));
      if (status.ok() || absl::IsFailedPrecondition(status)) return status;
      // A port at which nothing answers tells less than one at which another launch does.
      if (!absl::IsAborted(last)) last = status;
    }
  }
  return last;
}

// kAborted when what listens there is of another launch, or foreign, and there are more ports.
absl::Status Store::Greet(const CommOptions& options, const SocketAddress& address,
                          absl::Time deadline) {
  ASSIGN_OR_RETURN(Fd fd, Connect(address, deadline));
  const std::string hello = absl::StrCat(options.size, " ", options.rank, " ", options.run_id);
  absl::StatusOr<StoreAnswer> reply = Call(fd, StoreOp::kHello, kStoreMagic, hello, deadline);
  const bool go_on = options.store_ports > 1;
  if (!reply.ok()) {
    if (go_on && absl::IsFailedPrecondition(reply.status())) {
      return absl::AbortedError(reply.status().message());
    }
    return reply.status();
  }
  if (reply->code != StoreReply::kOk || reply->text != kStoreMagic) {
    const std::string why = absl::StrCat("the store at ", address.ToString(), " refused rank ",
                                         options.rank, ": ", reply->text);
    if (go_on && reply->code == StoreReply::kOtherLaunch) return absl::AbortedError(why);
    return absl::FailedPreconditionError(why);
  }
  ASSIGN_OR_RETURN(local_address_, LocalAddress(fd));
  connection_ = std::move(fd);
  return absl::OkStatus();
}

absl::StatusOr<StoreAnswer> Store::Ask(StoreOp op, std::string_view key, std::string_view value,
                                       absl::Time deadline) {
  CHECK_LE(key.size(), kMaxStoreKeyBytes);
  CHECK_LE(value.size(), kMaxStoreValueBytes);
  std::lock_guard lock(mutex_);
  if (!connection_.valid()) return absl::UnavailableError("store: the connection was lost");
  absl::StatusOr<StoreAnswer> answer = Call(connection_, op, key, value, deadline);
  // A late reply would be taken for the next one's.
  if (!answer.ok()) connection_.Reset();
  RETURN_IF_ERROR(answer.status()) << "store of rank 0";
  return answer;
}

absl::Status Store::Set(std::string_view key, std::string_view value, absl::Time deadline) {
  return Ask(StoreOp::kSet, key, value, deadline).status();
}

absl::StatusOr<std::string> Store::Get(std::string_view key, absl::Time deadline) {
  ASSIGN_OR_RETURN(StoreAnswer answer, Ask(StoreOp::kGet, key, "", deadline));
  if (answer.code == StoreReply::kOk) return std::move(answer.text);
  return absl::NotFoundError(absl::StrCat("store: no key ", std::string(key)));
}

absl::StatusOr<std::string> Store::Wait(std::string_view key, absl::Time deadline) {
  absl::Duration pause = absl::Milliseconds(1);
  while (true) {
    // The last question may end a little late, rather than be cut off and cost the connection.
    absl::StatusOr<std::string> value = Get(key, deadline + kLastAskGrace);
    if (!absl::IsNotFound(value.status())) return value;
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat("store: nobody set ", std::string(key)));
    }
    Pause(pause, absl::Milliseconds(20), deadline);
  }
}

}  // namespace plinth::comm
