// A small key-value store in rank 0's process, by which ranks find each other.
//
// Ranks only use it while a group forms: to publish a segment or an address and to read the
// others'. Keys and values are bytes; a key is set once or again, never removed. The server
// keeps one thread, which sleeps unless a client asks something.
#ifndef PLINTH_COMM_STORE_STORE_H_
#define PLINTH_COMM_STORE_STORE_H_

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plinth/comm/net/socket.h"
#include "plinth/comm/rendezvous/options.h"
#include "plinth/comm/store/store_server.h"
#include "plinth/comm/store/store_wire.h"

namespace plinth::comm {

// One rank's connection to the store; on rank 0 it owns the server too, which ends with it.
// Thread-safe.
class Store {
 public:
  // Starts the server when options.rank is 0, then connects. While rank 0 is not up or its name
  // not known yet, retries with growing pauses until `deadline`; the error then tells the last
  // reason. With several ports, one at which another launch or a foreign program answers is
  // passed over. Errors that a retry cannot mend return at once: every port is taken
  // (kAlreadyExists), the store refuses this rank or its host's name is a loopback address
  // though the launch spans several hosts (kFailedPrecondition).
  static absl::StatusOr<std::unique_ptr<Store>> Open(const CommOptions& options,
                                                     absl::Time deadline);
  ~Store();

  // The address by which this rank reaches rank 0's host.
  const SocketAddress& local_address() const { return local_address_; }

  // CHECKs the limits of store_wire.h on keys and values.
  absl::Status Set(std::string_view key, std::string_view value, absl::Time deadline);
  // kNotFound when the key is not set.
  absl::StatusOr<std::string> Get(std::string_view key, absl::Time deadline);
  // Waits until the key is set; kDeadlineExceeded names the key. May end up to a second late.
  absl::StatusOr<std::string> Wait(std::string_view key, absl::Time deadline);

 private:
  Store();
  absl::Status ConnectWithRetries(const CommOptions& options, absl::Time deadline);
  // One attempt at every port and address.
  absl::Status ConnectOnce(const CommOptions& options, absl::Time deadline);
  absl::Status Greet(const CommOptions& options, const SocketAddress& address, absl::Time deadline);
  absl::StatusOr<StoreAnswer> Ask(StoreOp op, std::string_view key, std::string_view value,
                                  absl::Time deadline);

  std::unique_ptr<StoreServer> server_;  // rank 0 only; outlives the connection below
  std::mutex mutex_;                     // guards connection_: groups may form in several threads
  Fd connection_;
  SocketAddress local_address_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_STORE_STORE_H_
