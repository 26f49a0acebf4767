// A small HTTP/1.1 server: one thread for each connection, parsing by Boost.Beast.
//
// Made for an inference server: few, long-lived connections whose replies stream. Every
// read and write has a deadline, requests are bounded in size, and a handler can ask
// whether its client has gone. When all connections are taken, a new client gets the place of the
// one that has been idle longest.
#ifndef PLINTH_INFER_SERVE_HTTP_SERVER_H_
#define PLINTH_INFER_SERVE_HTTP_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace plinth::infer::http {

struct Request {
  std::string method;  // "GET"
  std::string path;    // "/v1/models", without the query, as sent (not decoded)
  std::string query;   // "offset=3", without the question mark
  std::string body;

  // The value of a query parameter, as sent; nothing when it is absent.
  std::optional<std::string> Parameter(std::string_view name) const;
};

using Headers = std::vector<std::pair<std::string, std::string>>;

// What a handler answers: either one Send, or StartStream, any number of Writes, Finish.
// Used by the handler's thread only. A handler that returns without an answer gives 503 while the
// server stops, 400 when the client has closed, else 500.
class Response {
 public:
  virtual ~Response() = default;
  virtual void Send(int status, std::string_view content_type, std::string_view body,
                    const Headers& headers = {}) = 0;
  // The status line and headers go out at once; the body follows in chunks.
  virtual void StartStream(std::string_view content_type) = 0;
  // False when the client has gone or did not read for the write deadline: stop working.
  virtual bool Write(std::string_view data) = 0;
  virtual void Finish() = 0;
  // True when the client closed its connection, or the server is stopping. Costs a
  // system call.
  virtual bool Gone() = 0;
};

using Handler = std::function<void(const Request& request, Response& response)>;

struct ServerOptions {
  std::string host = "127.0.0.1";                       // address or name to listen on
  int port = 0;                                         // 0: any free port
  int max_connections = 256;                            // more with a request each: 503
  int64_t max_body_bytes = int64_t{8} << 20;            // larger requests get 413
  absl::Duration request_deadline = absl::Seconds(30);  // to send a whole request, once begun
  absl::Duration idle_deadline = absl::Seconds(75);     // between requests
  absl::Duration write_deadline = absl::Seconds(30);    // for the client to take a write
};

// Thread-safe.
class Server {
 public:
  // Binds, listens and answers from then on. `handler` is called from several threads at
  // once. kUnavailable: the address is in use or cannot be had; names it and the reason.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       Handler handler);
  // Stops accepting, makes Gone() true for running handlers, waits for them to return.
  virtual ~Server() = default;
  virtual int port() const = 0;
};

}  // namespace plinth::infer::http

#endif  // PLINTH_INFER_SERVE_HTTP_SERVER_H_
