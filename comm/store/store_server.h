// The server side of the store; see store.h for what it serves and the wire.
#ifndef PLINTH_COMM_STORE_STORE_SERVER_H_
#define PLINTH_COMM_STORE_STORE_SERVER_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "plinth/comm/net/socket.h"

namespace plinth::comm {

// Serves from its own thread until destroyed. Bounded: a request beyond the store's key and
// value limits, one before a valid hello, or a total above 64 MiB ends its connection.
class StoreServer {
 public:
  // Takes the first of `ports` ports from `port` on that no other process listens on;
  // kAlreadyExists when there is none. Port 0 lets the system choose.
  static absl::StatusOr<std::unique_ptr<StoreServer>> Start(int port, int ports, int world_size,
                                                            std::string run_id);
  // Serves a port that is held already.
  static absl::StatusOr<std::unique_ptr<StoreServer>> StartOn(Listener listener, int world_size,
                                                              std::string run_id);
  ~StoreServer();

  int port() const { return listener_.port; }

 private:
  struct Client {
    Fd fd;
    std::string inbox;  // bytes of requests not answered yet
    bool greeted = false;
  };

  StoreServer(Listener listener, Fd stop, int world_size, std::string run_id);
  void Serve();
  // False when the connection is to be closed.
  bool ReadFrom(Client& client);
  bool AnswerAll(Client& client);
  std::string Answer(Client& client, char op, std::string_view key, std::string_view value);
  std::string Greet(Client& client, std::string_view magic, std::string_view text);

  const Listener listener_;
  const Fd stop_;  // readable once the server is to end
  const int world_size_;
  const std::string run_id_;

  // Used by the serving thread alone.
  std::vector<std::unique_ptr<Client>> clients_;
  std::set<int> ranks_;
  std::map<std::string, std::string, std::less<>> entries_;
  size_t stored_bytes_ = 0;

  std::thread thread_;  // last: ends before what it uses
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_STORE_STORE_SERVER_H_
