#include "plinth/comm/net/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr int kBacklog = 1024;

std::string ErrnoText(int error) { return std::strerror(error); }

absl::Status SystemError(const std::string& what, int error) {
  const std::string text = absl::StrCat(what, ": ", ErrnoText(error));
  if (error == EADDRINUSE) return absl::AlreadyExistsError(text);
  return absl::UnavailableError(text);
}

// Small messages must not wait for each other's acknowledgement.
void SetNoDelay(int fd) {
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

// Waits for `events`; errors and hang-ups also count, the next call reports them.
absl::Status WaitFor(int fd, short events, absl::Time deadline) {
  while (true) {
    pollfd entry{.fd = fd, .events = events};
    const int ready = poll(&entry, 1, PollMilliseconds(deadline, 1000));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return SystemError("poll", errno);
    if (absl::Now() >= deadline) return absl::DeadlineExceededError("timed out");
  }
}

const in_addr* Ipv4Of(const SocketAddress& address) {
  if (address.storage.ss_family == AF_INET) {
    return &reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr;
  }
  const auto* six = reinterpret_cast<const sockaddr_in6*>(&address.storage);
  if (!IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) return nullptr;
  return reinterpret_cast<const in_addr*>(&six->sin6_addr.s6_addr[12]);
}

// One attempt for one family. IPv6 sockets also take IPv4.
absl::StatusOr<Listener> ListenOn(int family, int port) {
  Fd fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return SystemError("socket", errno);
  const int one = 1;
  const int zero = 0;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  SocketAddress address;
  if (family == AF_INET6) {
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
    auto* six = reinterpret_cast<sockaddr_in6*>(&address.storage);
    six->sin6_family = AF_INET6;
    six->sin6_addr = in6addr_any;
    six->sin6_port = htons(static_cast<uint16_t>(port));
    address.length = sizeof(sockaddr_in6);
  } else {
    auto* four = reinterpret_cast<sockaddr_in*>(&address.storage);
    four->sin_family = AF_INET;
    four->sin_addr.s_addr = htonl(INADDR_ANY);
    four->sin_port = htons(static_cast<uint16_t>(port));
    address.length = sizeof(sockaddr_in);
  }
  auto* raw = reinterpret_cast<sockaddr*>(&address.storage);
  if (bind(fd.get(), raw, address.length) != 0 || listen(fd.get(), kBacklog) != 0) {
    return SystemError(absl::StrCat("listen on port ", port), errno);
  }
  if (getsockname(fd.get(), raw, &address.length) != 0) return SystemError("getsockname", errno);
  const int bound = family == AF_INET6
                        ? ntohs(reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port)
                        : ntohs(reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port);
  return Listener{std::move(fd), bound};
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    Reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Fd::Reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

std::string SocketAddress::ToString() const {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&storage), length, host, sizeof(host), port,
                  sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "unknown address";
  }
  if (storage.ss_family == AF_INET6) return absl::StrCat("[", host, "]:", port);
  return absl::StrCat(host, ":", port);
}

std::string SocketAddress::Host() const {
  char host[NI_MAXHOST];
  if (const in_addr* four = Ipv4Of(*this)) return inet_ntop(AF_INET, four, host, sizeof(host));
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&storage), length, host, sizeof(host), nullptr,
                  0, NI_NUMERICHOST) != 0) {
    return "unknown address";
  }
  return host;
}

bool SocketAddress::IsLoopback() const {
  if (const in_addr* four = Ipv4Of(*this)) return ntohl(four->s_addr) >> 24 == 127;
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr);
}

absl::StatusOr<std::vector<SocketAddress>> Resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot resolve \"", host, "\": ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    SocketAddress address;
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.length = entry->ai_addrlen;
    addresses.push_back(address);
  }
  return addresses;
}

absl::StatusOr<Fd> Connect(const SocketAddress& address, absl::Time deadline) {
  const std::string what = absl::StrCat("connect to ", address.ToString());
  Fd fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return SystemError(what, errno);
  SetNoDelay(fd.get());
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) == 0) {
    return fd;
  }
  if (errno != EINPROGRESS) return SystemError(what, errno);
  RETURN_IF_ERROR(WaitFor(fd.get(), POLLOUT, deadline)) << what;
  int error = 0;
  socklen_t length = sizeof(error);
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return SystemError(what, error);
  return fd;
}

absl::StatusOr<Listener> Listen(int port) {
  absl::StatusOr<Listener> listener = ListenOn(AF_INET6, port);
  // A kernel without IPv6 cannot make the socket; a taken port is the same for both.
  if (listener.ok() || absl::IsAlreadyExists(listener.status())) return listener;
  return ListenOn(AF_INET, port);
}

absl::StatusOr<Fd> Accept(const Fd& listener, absl::Time deadline) {
  while (true) {
    Fd fd(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) {
      SetNoDelay(fd.get());
      return fd;
    }
    const int error = errno;
    if (error != EAGAIN && error != EINTR && error != ECONNABORTED) {
      return SystemError("accept", error);
    }
    RETURN_IF_ERROR(WaitFor(listener.get(), POLLIN, deadline)) << "accept";
  }
}

absl::StatusOr<SocketAddress> LocalAddress(const Fd& connection) {
  SocketAddress address;
  address.length = sizeof(address.storage);
  if (getsockname(connection.get(), reinterpret_cast<sockaddr*>(&address.storage),
                  &address.length) != 0) {
    return SystemError("getsockname", errno);
  }
  return address;
}

absl::StatusOr<SocketAddress> RemoteAddress(const Fd& connection) {
  SocketAddress address;
  address.length = sizeof(address.storage);
  if (getpeername(connection.get(), reinterpret_cast<sockaddr*>(&address.storage),
                  &address.length) != 0) {
    return SystemError("getpeername", errno);
  }
  return address;
}

void ProbeIdle(const Fd& connection, int probes) {
  const int one = 1;
  const int fd = connection.get();
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &one, sizeof(one));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &one, sizeof(one));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

absl::Duration SilenceOf(const Fd& connection) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (getsockopt(connection.get(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
      (info.tcpi_unacked == 0 && info.tcpi_probes == 0)) {
    return absl::ZeroDuration();
  }
  return absl::Milliseconds(info.tcpi_last_ack_recv);
}

absl::Status SendAll(const Fd& fd, std::span<const std::byte> bytes, absl::Time deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      RETURN_IF_ERROR(WaitFor(fd.get(), POLLOUT, deadline)) << "send";
    } else if (errno != EINTR) {
      return SystemError("send", errno);
    }
  }
  return absl::OkStatus();
}

absl::Status ReceiveAll(const Fd& fd, std::span<std::byte> bytes, absl::Time deadline) {
  while (!bytes.empty()) {
    const ssize_t got = recv(fd.get(), bytes.data(), bytes.size(), 0);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<size_t>(got));
    } else if (got == 0) {
      return absl::UnavailableError("receive: connection closed by the other side");
    } else if (errno == EAGAIN) {
      RETURN_IF_ERROR(WaitFor(fd.get(), POLLIN, deadline)) << "receive";
    } else if (errno != EINTR) {
      return SystemError("receive", errno);
    }
  }
  return absl::OkStatus();
}

int PollMilliseconds(absl::Time deadline, int cap_ms) {
  const int64_t left =
      absl::ToInt64Milliseconds(absl::Ceil(deadline - absl::Now(), absl::Milliseconds(1)));
  return static_cast<int>(std::clamp<int64_t>(left, 0, cap_ms));
}

}  // namespace plinth::comm
