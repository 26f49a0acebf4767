#include "plinth/infer/serve/http/server.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>

#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cstring>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/infer/serve/http/socket_stream.h"

namespace plinth::infer::http {
namespace {

namespace beast_http = boost::beast::http;
using boost::system::error_code;

// For a client that is still sending a request that was refused.
constexpr absl::Duration kLinger = absl::Seconds(1);
// The same for one that came when there was no room: its thread is one too many.
constexpr absl::Duration kRefusedLinger = absl::Milliseconds(100);
// Between two tries to accept when the process has no descriptor left.
constexpr int kRetryMs = 20;

// How a reply that the server itself makes looks to a client: the API's error envelope.
void SendError(Response& response, int status, const std::string& message) {
  const char* type = status >= 500 ? "server_error" : "invalid_request_error";
  response.Send(status, "application/json",
                absl::StrCat(R"({"error":{"message":")", message, R"(","type":")", type,
                             R"(","param":null,"code":null}})"));
}

class ConnectionResponse : public Response {
 public:
  // `chunks`: the client speaks HTTP/1.1. To an older one a stream ends with the connection.
  ConnectionResponse(SocketStream& stream, const ServerOptions& options, bool keep_alive, bool head,
                     bool chunks)
      : stream_(stream), options_(options), keep_alive_(keep_alive), head_(head), chunks_(chunks) {}

  void Send(int status, std::string_view content_type, std::string_view body,
            const Headers& headers) override {
    CHECK(!answered_) << "a request is answered once";
    answered_ = true;
    beast_http::response<beast_http::string_body> response(static_cast<beast_http::status>(status),
                                                           11);
    response.set(beast_http::field::content_type, Text(content_type));
    for (const auto& [name, value] : headers) response.set(Text(name), Text(value));
    response.keep_alive(keep_alive_);
    response.body() = std::string(body);
    response.prepare_payload();
    if (head_) response.body().clear();  // the length stays what GET would send
    error_code ec;
    ArmWrite();
    beast_http::serializer<false, beast_http::string_body> serializer(response);
    beast_http::write(stream_, serializer, ec);
    failed_ = static_cast<bool>(ec);
  }

  void StartStream(std::string_view content_type) override {
    CHECK(!answered_) << "a request is answered once";
    answered_ = true;
    beast_http::response<beast_http::empty_body> response(beast_http::status::ok, 11);
    response.set(beast_http::field::content_type, Text(content_type));
    response.set(beast_http::field::cache_control, "no-cache");
    response.keep_alive(keep_alive_ && chunks_);
    response.chunked(chunks_);
    beast_http::serializer<false, beast_http::empty_body> serializer(response);
    error_code ec;
    ArmWrite();
    beast_http::write_header(stream_, serializer, ec);
    // Beast reports the end of a header-only message as need_more with a chunked body.
    if (ec == beast_http::error::need_buffer) ec = {};
    failed_ = static_cast<bool>(ec);
    streaming_ = true;
  }

  bool Write(std::string_view data) override {
    CHECK(streaming_) << "Write without StartStream";
    if (!failed_ && !data.empty()) {
      error_code ec;
      ArmWrite();
      const boost::asio::const_buffer bytes(data.data(), data.size());
      if (chunks_) {
        boost::asio::write(stream_, beast_http::make_chunk(bytes), ec);
      } else {
        boost::asio::write(stream_, bytes, ec);
      }
      failed_ = static_cast<bool>(ec);
    }
    return !failed_;
  }

  void Finish() override {
    CHECK(streaming_) << "Finish without StartStream";
    streaming_ = false;
    ended_by_close_ = !chunks_;
    if (failed_ || ended_by_close_) return;
    error_code ec;
    ArmWrite();
    boost::asio::write(stream_, beast_http::make_chunk_last(), ec);
    failed_ = static_cast<bool>(ec);
  }

  bool Gone() override { return failed_ || stream_.Gone(); }

  bool answered() const { return answered_; }
  // The connection can carry another request.
  bool reusable() const {
    return answered_ && keep_alive_ && !failed_ && !streaming_ && !ended_by_close_;
  }

 private:
  static boost::beast::string_view Text(std::string_view text) {
    return {text.data(), text.size()};
  }
  void ArmWrite() { stream_.set_deadline(absl::Now() + options_.write_deadline); }

  SocketStream& stream_;
  const ServerOptions& options_;
  const bool keep_alive_, head_, chunks_;
  bool answered_ = false, streaming_ = false, failed_ = false, ended_by_close_ = false;
};

class ThreadedServer : public Server {
 public:
  ThreadedServer(const ServerOptions& options, Handler handler, int listen_fd, int stop_fd,
                 int port)
      : options_(options),
        handler_(std::move(handler)),
        listen_fd_(listen_fd),
        stop_fd_(stop_fd),
        port_(port),
        acceptor_([this] { Accept(); }) {}

  ~ThreadedServer() override {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(stop_fd_, &one, sizeof(one));
    acceptor_.join();
    while (!connections_.empty()) {  // the acceptor has ended: nobody adds to the list
      connections_.front().thread.join();
      connections_.pop_front();
    }
    close(listen_fd_);
    close(stop_fd_);
  }

  int port() const override { return port_; }

 private:
  // All but the thread is guarded by mutex_.
  struct Connection {
    std::thread thread;
    int fd;
    // Since when it has waited for the first byte of a request; never while it has a request.
    absl::Time idle_since;
    bool evicted = false;  // its socket is shut down, so that its thread ends
    bool done = false;
  };

  // While one lives, its connection waits for a request. `fd` stays open at least as long.
  class Idle {
   public:
    Idle(ThreadedServer& server, Connection& connection)
        : server_(server), connection_(connection) {
      Set(absl::Now());
    }
    ~Idle() { Set(absl::InfiniteFuture()); }

   private:
    void Set(absl::Time since) {
      const std::lock_guard lock(server_.mutex_);
      connection_.idle_since = since;
    }
    ThreadedServer& server_;
    Connection& connection_;
  };

  void Accept() {
    while (true) {
      pollfd polled[2] = {{listen_fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
      poll(polled, 2, -1);
      if (polled[1].revents != 0) return;
      const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) {
        // No descriptor left: the client keeps its place in the queue until one is free. Any
        // other reason is a client that left the queue.
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
          EvictLongestIdle();
          poll(&polled[1], 1, kRetryMs);
          ReapAndCount();
        }
        continue;
      }
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      Begin(fd, ReapAndCount() >= options_.max_connections && !EvictLongestIdle());
    }
  }

  void Begin(int fd, bool full) {
    const std::lock_guard lock(mutex_);
    Connection& connection = connections_.emplace_back();
    connection.fd = fd;
    connection.idle_since = full ? absl::InfiniteFuture() : absl::Now();
    try {
      connection.thread = std::thread([this, fd, full, &connection] {
        Serve(fd, full, connection);
        const std::lock_guard done_lock(mutex_);
        connection.done = true;
      });
    } catch (const std::system_error&) {  // no thread to be had: the client may try again
      close(fd);
      connections_.pop_back();
    }
  }

  // Ends the connection that has waited longest for a request, so that a new one has room. False
  // when none waits. One whose request has come, but was not looked at yet, does not wait.
  bool EvictLongestIdle() {
    const std::lock_guard lock(mutex_);
    Connection* longest = nullptr;
    for (Connection& connection : connections_) {
      if (connection.idle_since == absl::InfiniteFuture() || connection.evicted) continue;
      char byte;
      if (recv(connection.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) continue;
      if (longest == nullptr || connection.idle_since < longest->idle_since) longest = &connection;
    }
    if (longest == nullptr) return false;
    longest->evicted = true;
    shutdown(longest->fd, SHUT_RDWR);
    return true;
  }

  // Joins the threads of closed connections; returns how many are open.
  int ReapAndCount() {
    std::list<Connection> closed;
    int open = 0;
    {
      const std::lock_guard lock(mutex_);
      for (auto it = connections_.begin(); it != connections_.end();) {
        const auto here = it++;
        if (here->done) {
          closed.splice(closed.end(), connections_, here);
        } else if (!here->evicted) {
          ++open;
        }
      }
    }
    for (Connection& connection : closed) connection.thread.join();
    return open;
  }

  void Serve(int fd, bool full, Connection& connection) {
    SocketStream stream(fd, stop_fd_);
    if (full) {
      ConnectionResponse response(stream, options_, false, false, false);
      SendError(response, 503, "too many connections");
      stream.Linger(kRefusedLinger);
      return;
    }
    boost::beast::flat_buffer buffer;
    while (ServeOne(stream, buffer, connection)) {
    }
  }

  // One request. False when the connection ends.
  bool ServeOne(SocketStream& stream, boost::beast::flat_buffer& buffer, Connection& connection) {
    error_code ec;
    beast_http::request_parser<beast_http::string_body> parser;
    parser.body_limit(static_cast<uint64_t>(options_.max_body_bytes));
    parser.header_limit(64 << 10);
    // The idle deadline holds for the first byte only, the request deadline from then on.
    if (buffer.size() == 0) {
      const Idle idle(*this, connection);
      stream.set_deadline(absl::Now() + options_.idle_deadline);
      const size_t n = stream.read_some(buffer.prepare(4096), ec);
      if (ec) return false;
      buffer.commit(n);
    }
    stream.set_deadline(absl::Now() + options_.request_deadline);
    beast_http::read_header(stream, buffer, parser, ec);
    if (!ec && parser.get().count(beast_http::field::transfer_encoding) > 0 && !parser.chunked()) {
      // Where such a body ends is not known, and so not where the next request begins.
      Refuse(stream, 501, "the only transfer encoding that is understood is chunked");
      return false;
    }
    if (!ec && boost::beast::iequals(parser.get()[beast_http::field::expect], "100-continue")) {
      // The client waits with its body until it is told that the header was no reason to refuse.
      boost::asio::write(stream, boost::asio::buffer("HTTP/1.1 100 Continue\r\n\r\n", 25), ec);
    }
    if (!ec) beast_http::read(stream, buffer, parser, ec);
    if (ec) {
      AnswerUnreadable(stream, ec);
      return false;
    }
    const auto& message = parser.get();
    Request request;
    request.method = std::string(message.method_string());
    const std::string target(message.target());
    const size_t mark = target.find('?');
    request.path = target.substr(0, mark);
    if (mark != std::string::npos) request.query = target.substr(mark + 1);
    request.body = message.body();
    ConnectionResponse response(stream, options_, message.keep_alive(),
                                message.method() == beast_http::verb::head,
                                message.version() >= 11);
    handler_(request, response);
    if (!response.answered()) AnswerForHandler(stream, response);
    return response.reusable();
  }

  // The handler gave up because the server stops or the client has gone, unless it has a bug.
  // A client that closed only its sending side still reads, and learns why there is no reply.
  void AnswerForHandler(SocketStream& stream, Response& response) {
    if (stream.Stopping()) {
      SendError(response, 503, "the server is stopping");
    } else if (stream.Gone()) {
      SendError(response, 400, "the client closed its side of the connection before the reply");
    } else {
      SendError(response, 500, "the server gave no answer");
    }
  }

  // A request that cannot be parsed gets a reason, a connection that ended gets nothing.
  void AnswerUnreadable(SocketStream& stream, const error_code& ec) {
    int status = 400;
    std::string reason = "malformed HTTP request: " + ec.message();
    if (ec == beast_http::error::end_of_stream || ec == beast_http::error::partial_message ||
        ec == boost::asio::error::operation_aborted ||
        (ec != boost::asio::error::timed_out &&
         ec.category() == boost::system::system_category())) {
      return;
    }
    if (ec == beast_http::error::body_limit) {
      status = 413;
      reason = absl::StrCat("the request body is larger than ", options_.max_body_bytes, " bytes");
    } else if (ec == beast_http::error::header_limit) {
      status = 431;
      reason = "the request headers are larger than 65536 bytes";
    } else if (ec == boost::asio::error::timed_out) {
      status = 408;
      reason = "the request did not arrive in time";
    }
    Refuse(stream, status, reason);
  }

  // The reason why a request is not read to its end, and the end of the connection.
  void Refuse(SocketStream& stream, int status, const std::string& reason) {
    ConnectionResponse response(stream, options_, false, false, false);
    SendError(response, status, reason);
    stream.Linger(kLinger);
  }

  const ServerOptions options_;
  const Handler handler_;
  const int listen_fd_, stop_fd_, port_;
  std::mutex mutex_;
  std::list<Connection> connections_;  // guarded by mutex_
  std::thread acceptor_;               // last: uses everything above
};

absl::StatusOr<int> Listen(const std::string& host, int port) {
  const std::string where = absl::StrCat(host, ":", port);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", where, ": ", gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, 128) != 0) {
    const int error = errno;
    if (fd >= 0) close(fd);
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", where, ": ", std::strerror(error)));
  }
  return fd;
}

absl::StatusOr<int> PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return absl::InternalError(absl::StrCat("getsockname: ", std::strerror(errno)));
  }
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

std::optional<std::string> Request::Parameter(std::string_view name) const {
  for (const absl::string_view part : absl::StrSplit(query, '&')) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (std::string_view(pair.first.data(), pair.first.size()) == name) {
      return std::string(pair.second);
    }
  }
  return std::nullopt;
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      Handler handler) {
  ASSIGN_OR_RETURN(const int listen_fd, Listen(options.host, options.port));
  absl::StatusOr<int> port = PortOf(listen_fd);
  const int stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (!port.ok() || stop_fd < 0) {
    close(listen_fd);
    if (stop_fd >= 0) close(stop_fd);
    return port.ok() ? absl::ResourceExhaustedError("no descriptor for the server") : port.status();
  }
  return std::make_unique<ThreadedServer>(options, std::move(handler), listen_fd, stop_fd, *port);
}

}  // namespace plinth::infer::http
