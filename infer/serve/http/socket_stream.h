// SocketStream: a connected socket as Beast's synchronous stream, with a deadline.
#ifndef PLINTH_INFER_SERVE_HTTP_SOCKET_STREAM_H_
#define PLINTH_INFER_SERVE_HTTP_SOCKET_STREAM_H_

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace plinth::infer::http {

// Models Asio's SyncReadStream and SyncWriteStream. Owns the descriptor. Reads and writes
// end with timed_out at the deadline set last, and with operation_aborted once `stop_fd`
// is readable.
class SocketStream {
 public:
  using error_code = boost::system::error_code;

  SocketStream(int fd, int stop_fd) : fd_(fd), stop_fd_(stop_fd) {}
  ~SocketStream() { close(fd_); }
  SocketStream(const SocketStream&) = delete;
  SocketStream& operator=(const SocketStream&) = delete;

  void set_deadline(absl::Time deadline) { deadline_ = deadline; }

  template <typename Buffers>
  size_t read_some(const Buffers& buffers, error_code& ec) {
    Pieces pieces(buffers);
    return Transfer(
        POLLIN, pieces, [&] { return recvmsg(fd_, &pieces.message, MSG_DONTWAIT); }, ec);
  }
  template <typename Buffers>
  size_t write_some(const Buffers& buffers, error_code& ec) {
    Pieces pieces(buffers);
    return Transfer(
        POLLOUT, pieces, [&] { return sendmsg(fd_, &pieces.message, MSG_DONTWAIT | MSG_NOSIGNAL); },
        ec);
  }
  // Beast asks for the throwing forms as well but is never called with them here.
  template <typename Buffers>
  size_t read_some(const Buffers& buffers) {
    error_code ec;
    return read_some(buffers, ec);
  }
  template <typename Buffers>
  size_t write_some(const Buffers& buffers) {
    error_code ec;
    return write_some(buffers, ec);
  }

  // Ends our side and drops what the peer still sends, until it closes or `patience` is over. To
  // close with unread bytes would reset the connection, and a peer that is still sending its
  // request might never see the reply.
  void Linger(absl::Duration patience) {
    shutdown(fd_, SHUT_WR);
    set_deadline(absl::Now() + patience);
    char dropped[1 << 14];
    error_code ec;
    while (!ec && absl::Now() < deadline_) {
      read_some(boost::asio::mutable_buffer(dropped, sizeof(dropped)), ec);
    }
  }

  // The peer has closed (also half: a client that stops writing has stopped listening), or
  // the server stops.
  bool Gone() const {
    pollfd polled[2] = {{fd_, POLLRDHUP, 0}, {stop_fd_, POLLIN, 0}};
    return poll(polled, 2, 0) > 0 && (polled[0].revents != 0 || polled[1].revents != 0);
  }
  bool Stopping() const {
    pollfd polled = {stop_fd_, POLLIN, 0};
    return poll(&polled, 1, 0) > 0;
  }

 private:
  // The first buffers of a sequence, as one system call takes them.
  struct Pieces {
    template <typename Buffers>
    explicit Pieces(const Buffers& buffers) {
      for (auto it = boost::asio::buffer_sequence_begin(buffers);
           it != boost::asio::buffer_sequence_end(buffers) && message.msg_iovlen < kMost; ++it) {
        // One type for both directions: a buffer that is sent is not written to.
        const boost::asio::const_buffer buffer(*it);
        if (buffer.size() == 0) continue;
        parts[message.msg_iovlen++] = {const_cast<void*>(buffer.data()), buffer.size()};
      }
      message.msg_iov = parts;
    }
    static constexpr size_t kMost = 16;
    iovec parts[kMost];
    msghdr message{};
  };

  template <typename F>
  size_t Transfer(short event, const Pieces& pieces, F transfer, error_code& ec) {
    ec = {};
    if (pieces.message.msg_iovlen == 0) return 0;
    while (true) {
      const ssize_t n = transfer();
      if (n > 0) return static_cast<size_t>(n);
      if (n == 0) {
        ec = boost::asio::error::eof;
        return 0;
      }
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) {
        ec = error_code(errno, boost::system::system_category());
        return 0;
      }
      const double wait_ms = absl::ToDoubleMilliseconds(deadline_ - absl::Now());
      pollfd polled[2] = {{fd_, event, 0}, {stop_fd_, POLLIN, 0}};
      const int ready =
          wait_ms > 0 ? poll(polled, 2, static_cast<int>(std::min(wait_ms, 3.6e6)) + 1) : 0;
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) ec = boost::asio::error::timed_out;
      if (ready > 0 && polled[1].revents != 0) ec = boost::asio::error::operation_aborted;
      if (ready == 0 || polled[1].revents != 0) return 0;
    }
  }

  const int fd_;
  const int stop_fd_;
  absl::Time deadline_ = absl::InfiniteFuture();
};

}  // namespace plinth::infer::http

#endif  // PLINTH_INFER_SERVE_HTTP_SOCKET_STREAM_H_
