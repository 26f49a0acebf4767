// TCP sockets with deadlines: what the store and the tcp transport share.
//
// Every call that can wait takes an absolute deadline. Sockets are non-blocking and close on
// exec. Errors carry the address and the system's own text: kUnavailable when the other side
// refused, closed or vanished (a retry may help), kDeadlineExceeded when time ran out.
// Functions are re-entrant; an Fd is used by one thread at a time.
#ifndef PLINTH_COMM_NET_SOCKET_H_
#define PLINTH_COMM_NET_SOCKET_H_

#include <sys/socket.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace plinth::comm {

// Owns a file descriptor; -1 is none.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { Reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void Reset();

 private:
  int fd_ = -1;
};

// An IPv4 or IPv6 address with port.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  std::string ToString() const;  // "127.0.0.1:29500", "[::1]:29500"
  std::string Host() const;      // "127.0.0.1", "::1"; an IPv4 address mapped into IPv6 as such
  bool IsLoopback() const;       // 127.0.0.0/8, ::1, or the former mapped into IPv6
};

// Addresses of `host` (a name or a numeric address), in the resolver's order. One attempt; the
// resolver's own time limit applies. kUnavailable when the name is not known (yet).
absl::StatusOr<std::vector<SocketAddress>> Resolve(const std::string& host, int port);

absl::StatusOr<Fd> Connect(const SocketAddress& address, absl::Time deadline);

struct Listener {
  Fd fd;
  int port = 0;
};
// Listens on every interface, IPv6 and IPv4. Port 0 lets the system choose.
// kAlreadyExists when the port is taken.
absl::StatusOr<Listener> Listen(int port);
absl::StatusOr<Fd> Accept(const Fd& listener, absl::Time deadline);

// The addresses of a connection's two ends.
absl::StatusOr<SocketAddress> LocalAddress(const Fd& connection);
absl::StatusOr<SocketAddress> RemoteAddress(const Fd& connection);

// Makes the system ask an idle connection's host once a second whether it is there, and end the
// connection when `probes` in a row (1 to 127) stay unanswered: a host that vanishes says no
// goodbye. Data that is on its way suspends the probes.
void ProbeIdle(const Fd& connection, int probes);

// How long the other host has left a probe or data unconfirmed; zero when it owes nothing.
absl::Duration SilenceOf(const Fd& connection);

// All bytes or an error.
absl::Status SendAll(const Fd& fd, std::span<const std::byte> bytes, absl::Time deadline);
absl::Status ReceiveAll(const Fd& fd, std::span<std::byte> bytes, absl::Time deadline);

// Milliseconds for poll(2) until `deadline`, at least 0, rounded up, at most `cap_ms`.
int PollMilliseconds(absl::Time deadline, int cap_ms);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_NET_SOCKET_H_
