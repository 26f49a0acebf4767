#include "plinth/cluster/launch/local.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/cluster/launch/rank_process.h"
#include "plinth/hardware/base/log.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::cluster {
namespace {

// Output is forwarded as it comes; this only bounds how late an end or a signal is seen.
constexpr int kPollMs = 50;

absl::StatusOr<int> FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  const bool ok = fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (!ok) {
    return absl::ResourceExhaustedError(absl::StrCat("no free port: ", std::strerror(error)));
  }
  return ntohs(address.sin_port);
}

std::string Describe(int rank, int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return absl::StrCat("rank ", rank, " was killed by SIG", sigabbrev_np(signal), " (", signal,
                        ")");
  }
  return absl::StrCat("rank ", rank, " exited with ", WEXITSTATUS(wait_status));
}

int ShellCode(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

// The errors that the ranks of one group have given: lines that begin with the program's name.
class ProgramErrors {
 public:
  explicit ProgramErrors(const std::string& program)
      : start_(program.substr(program.rfind('/') + 1) + ": ") {}

  // False for an error that another rank has given before. Other lines are no concern of ours.
  bool IsNew(int rank, const std::string& line) {
    if (!absl::StartsWith(line, start_)) return true;
    ranks_.insert(rank);
    const auto first = std::ranges::find(said_, line, &std::pair<std::string, int>::first);
    if (first != said_.end()) return first->second == rank;
    if (said_.size() < kMost) said_.emplace_back(line, rank);
    return true;
  }
  bool Has(int rank) const { return ranks_.count(rank) > 0; }

 private:
  // A program gives one error and ends; this bounds what one that goes on may cost us.
  static constexpr size_t kMost = 64;
  const std::string start_;
  std::vector<std::pair<std::string, int>> said_;  // and by whom first
  std::set<int> ranks_;                            // that gave any
};

// One start of all ranks, until none is left.
class Group {
 public:
  Group(const JobSpec& job, const std::atomic<int>& stop_signal)
      : job_(job), stop_signal_(stop_signal), errors_(job.command[0]) {}

  absl::Status Start() {
    ASSIGN_OR_RETURN(const int port, FreePort());
    for (int rank = 0; rank < job_.ranks; ++rank) {
      RankProcess::Environment environment = job_.environment;
      environment.insert(environment.end(), {{"RANK", std::to_string(rank)},
                                             {"LOCAL_RANK", std::to_string(rank)},
                                             {"WORLD_SIZE", std::to_string(job_.ranks)},
                                             {"LOCAL_WORLD_SIZE", std::to_string(job_.ranks)},
                                             {"MASTER_ADDR", "127.0.0.1"},
                                             {"MASTER_PORT", std::to_string(port)}});
      // With one rank there is nobody to tell apart.
      const std::string prefix = job_.ranks > 1 ? absl::StrCat("[rank ", rank, "] ") : "";
      if (!prefix.empty()) environment.emplace_back(kLinesMarked, "1");
      ASSIGN_OR_RETURN(std::unique_ptr<RankProcess> process,
                       RankProcess::Start(job_.command, environment, prefix,
                                          [this, rank](const std::string& line) {
                                            return errors_.IsNew(rank, line);
                                          }));
      ranks_.push_back(std::move(process));
    }
    return absl::OkStatus();
  }

  GroupResult Wait() {
    while (!AllReaped()) {
      PumpOutput();
      if (const int signal = stop_signal_.load(); signal != 0 && !stopping_) Stop(signal);
      for (int rank = 0; rank < job_.ranks; ++rank) {
        const bool ended_before = ranks_[rank]->wait_status().has_value();
        if (!ended_before && ranks_[rank]->Reap()) NoteEnd(rank);
      }
      if (stopping_ && !killed_ && absl::Now() >= kill_at_) {
        killed_ = true;
        for (auto& rank : ranks_) rank->Signal(SIGKILL);
      }
    }
    // What the ranks wrote last is still in the pipes. A grandchild that kept a pipe open
    // must not hold us: read what is there, not to the end.
    for (auto& rank : ranks_) {
      rank->out().Pump();
      rank->err().Pump();
    }
    result_.explained = !signalled_ && AFailedRankSaidWhy();
    return result_;
  }

 private:
  bool AllReaped() const {
    for (const auto& rank : ranks_) {
      if (!rank->wait_status().has_value()) return false;
    }
    return true;
  }

  bool AFailedRankSaidWhy() const {
    for (int rank = 0; rank < job_.ranks; ++rank) {
      const int code = ShellCode(*ranks_[rank]->wait_status());
      if (code != 0 && code != kExitInterrupted && errors_.Has(rank)) return true;
    }
    return false;
  }

  void PumpOutput() {
    std::vector<pollfd> polled;
    std::vector<LineCopier*> copiers;
    for (auto& rank : ranks_) {
      for (LineCopier* copier : {&rank->out(), &rank->err()}) {
        if (copier->fd() < 0) continue;
        polled.push_back({copier->fd(), POLLIN, 0});
        copiers.push_back(copier);
      }
    }
    poll(polled.data(), polled.size(), kPollMs);
    for (size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents != 0) copiers[i]->Pump();
    }
  }

  void NoteEnd(int rank) {
    const int status = *ranks_[rank]->wait_status();
    const int code = ShellCode(status);
    if (WIFSIGNALED(status) && !Sent(WTERMSIG(status))) signalled_ = true;
    if (code == 0 || failed_) return;
    failed_ = true;
    result_.exit_code = code;
    if (code == kExitInterrupted) return;  // the others are stopping as well
    result_.verdict = Describe(rank, status);
    if (!stopping_) Stop(SIGTERM);
  }

  // Whether this launcher has sent the ranks such a signal.
  bool Sent(int signal) const {
    return (stopping_ && signal == stop_sent_) || (killed_ && signal == SIGKILL);
  }

  void Stop(int signal) {
    stopping_ = true;
    stop_sent_ = signal;
    kill_at_ = absl::Now() + job_.grace;
    for (auto& rank : ranks_) rank->Signal(signal);
  }

  const JobSpec& job_;
  const std::atomic<int>& stop_signal_;
  std::vector<std::unique_ptr<RankProcess>> ranks_;
  GroupResult result_;
  ProgramErrors errors_;
  bool failed_ = false, stopping_ = false, killed_ = false;
  int stop_sent_ = 0;       // by which the ranks were asked to stop
  bool signalled_ = false;  // a rank was ended by a signal of somebody else
  absl::Time kill_at_;
};

}  // namespace

absl::StatusOr<GroupResult> RunLocal(const JobSpec& job, const std::atomic<int>& stop_signal) {
  RETURN_IF_ERROR(CheckJob(job));
  for (int restarts = 0;; ++restarts) {
    Group group(job, stop_signal);
    RETURN_IF_ERROR(group.Start());
    GroupResult result = group.Wait();
    result.restarts = restarts;
    if (result.verdict.empty() || stop_signal.load() != 0 || restarts == job.max_restarts) {
      return result;
    }
    LOG(WARNING) << result.verdict << "; starting the group again (" << restarts + 1 << " of "
                 << job.max_restarts << ")";
  }
}

}  // namespace plinth::cluster
