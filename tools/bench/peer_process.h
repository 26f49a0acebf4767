// PeerProcess: another program that does the same work, one line of request and reply at a time.
#ifndef PLINTH_TOOLS_BENCH_PEER_PROCESS_H_
#define PLINTH_TOOLS_BENCH_PEER_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace plinth::tools {

// Owns the process, which ends with this object: its stdin is closed, and it is killed if it has
// not ended a second later. Its stderr is ours. Used by one thread.
class PeerProcess {
 public:
  // Runs argv[0], found on the path, with these variables ("NAME=value") added to ours.
  static absl::StatusOr<std::unique_ptr<PeerProcess>> Start(const std::vector<std::string>& argv,
                                                            const std::vector<std::string>& extra);
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  // Sends a line, if any, and waits for the next line of the peer.
  // Errors   kUnavailable: the peer has ended; kDeadlineExceeded.
  absl::StatusOr<std::string> Ask(const std::string& line, absl::Duration timeout);

 private:
  PeerProcess(std::string name, pid_t pid, int socket)
      : name_(std::move(name)), pid_(pid), socket_(socket) {}

  const std::string name_;
  const pid_t pid_;
  const int socket_;
  std::string received_;
};

}  // namespace plinth::tools

#endif  // PLINTH_TOOLS_BENCH_PEER_PROCESS_H_
