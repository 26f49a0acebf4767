// RankProcess: one child of the launcher, with its two output pipes.
#ifndef PLINTH_CLUSTER_LAUNCH_RANK_PROCESS_H_
#define PLINTH_CLUSTER_LAUNCH_RANK_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace plinth::cluster {

// Copies complete lines from a pipe to a descriptor, each behind a prefix.
class LineCopier {
 public:
  // Whether a line is to be copied.
  using Wanted = std::function<bool(const std::string& line)>;

  // Owns `from` (non-blocking), borrows `to`.
  LineCopier(int from, int to, std::string prefix, Wanted wanted);
  ~LineCopier();
  LineCopier(const LineCopier&) = delete;
  LineCopier& operator=(const LineCopier&) = delete;

  int fd() const { return from_; }  // -1 once the other end closed
  // Copies what is there. At the end of the pipe also an unfinished last line.
  void Pump();

 private:
  void Write(const std::string& line);
  int from_;
  const int to_;
  const std::string prefix_;
  const Wanted wanted_;
  std::string partial_;
};

// Not thread-safe. The destructor kills a process that still runs and reaps it.
class RankProcess {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;
  // Each line of output stands behind `output_prefix`, except that lines to stderr which are not
  // `wanted_errors` are dropped. kNotFound when `command[0]` cannot be executed (the reason is in
  // the message).
  static absl::StatusOr<std::unique_ptr<RankProcess>> Start(const std::vector<std::string>& command,
                                                            const Environment& environment,
                                                            const std::string& output_prefix,
                                                            LineCopier::Wanted wanted_errors);
  ~RankProcess();
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  // True once the process has ended; then `wait_status` is what waitpid gave.
  bool Reap();
  std::optional<int> wait_status() const { return wait_status_; }
  void Signal(int signal);
  LineCopier& out() { return *out_; }
  LineCopier& err() { return *err_; }

 private:
  RankProcess(pid_t pid, int out, int err, const std::string& prefix,
              LineCopier::Wanted wanted_errors);
  const pid_t pid_;
  std::optional<int> wait_status_;
  std::unique_ptr<LineCopier> out_, err_;
};

}  // namespace plinth::cluster

#endif  // PLINTH_CLUSTER_LAUNCH_RANK_PROCESS_H_
