// RawClient: an HTTP client that speaks bytes, so that tests can send broken requests, see
// every byte of a reply, and leave when they like.
#ifndef PLINTH_INFER_SERVE_TESTING_RAW_CLIENT_H_
#define PLINTH_INFER_SERVE_TESTING_RAW_CLIENT_H_

#include <string>

#include "absl/time/time.h"

namespace plinth::infer::testing {

class RawClient {
 public:
  // Connects to 127.0.0.1. Reads give up after 10 seconds.
  explicit RawClient(int port);
  ~RawClient() { Close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void Close();
  // Tells the server that nothing more comes; reading goes on.
  void CloseSending();
  void Send(const std::string& text);
  // The same, but the server may have closed.
  void TrySend(const std::string& text);
  // A request whose reply ends the connection.
  void SendRequest(const std::string& method, const std::string& target, const std::string& body);
  // Everything until the text appears, or the end.
  std::string ReadUntil(const std::string& text);
  std::string ReadAll() { return ReadUntil(""); }
  // What arrives within `patience`: one piece, or nothing.
  std::string ReadFor(absl::Duration patience);

 private:
  int fd_;
};

struct HttpReply {
  int status = 0;
  std::string head;  // status line and headers
  std::string body;  // chunks joined
};

HttpReply Fetch(int port, const std::string& method, const std::string& target,
                const std::string& body = "");

}  // namespace plinth::infer::testing

#endif  // PLINTH_INFER_SERVE_TESTING_RAW_CLIENT_H_
