// Ranks as processes that are forked here.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "plinth/comm/bench/launch/launch.h"
#include "plinth/comm/net/socket.h"
#include "plinth/hardware/base/one_line.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

// For what the others know when one has failed. One that still waits for it, as while a group
// forms, is ended.
constexpr absl::Duration kLastWords = absl::Seconds(2);
constexpr int kPollMs = 10;

// Ranks tell the first process why they fail through a pipe that all write to: a message is one
// write, which the system keeps whole up to PIPE_BUF.
struct Pipe {
  Fd read;
  Fd write;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe");
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

void Report(const Fd& pipe, const absl::Status& status) {
  const std::string text = OneLine(std::string(status.message()));
  const std::string line =
      absl::StrCat(static_cast<int>(status.code()), " ", text.substr(0, PIPE_BUF - 16), "\n");
  // When it cannot be told the exit code still is.
  if (write(pipe.get(), line.data(), line.size()) < 0) std::perror("bench");
}

class Children {
 public:
  Children(Pipe pipe, absl::Duration timeout) : pipe_(std::move(pipe)), timeout_(timeout) {
    pipe_.write.Reset();  // theirs
  }

  void Add(int rank, pid_t pid) { left_.push_back({rank, pid}); }
  void Fail(std::string why) { Note(absl::UnavailableError(why)); }

  absl::Status Wait() {
    while (!left_.empty()) {
      pollfd entry = {.fd = pipe_.read.get(), .events = POLLIN};
      poll(&entry, 1, kPollMs);
      ReadReports();
      std::erase_if(left_, [this](const Child& child) { return HasEnded(child); });
      if (failed_ > 0) end_ = std::min(end_, absl::Now() + kLastWords);
      if (absl::Now() >= end_) KillAll();
      // A closed pipe is always readable.
      if ((entry.revents & POLLHUP) != 0) absl::SleepFor(absl::Milliseconds(kPollMs));
    }
    ReadReports();
    return Outcome();
  }

 private:
  struct Child {
    int rank;
    pid_t pid;
  };

  void ReadReports() {
    char chunk[PIPE_BUF];
    ssize_t got = 0;
    while ((got = read(pipe_.read.get(), chunk, sizeof(chunk))) > 0) {
      inbox_.append(chunk, static_cast<size_t>(got));
    }
    size_t end = 0;
    while ((end = inbox_.find('\n')) != std::string::npos) {
      const std::string line = inbox_.substr(0, end);
      inbox_.erase(0, end + 1);
      const size_t space = line.find(' ');
      Note({static_cast<absl::StatusCode>(std::atoi(line.c_str())), line.substr(space + 1)});
    }
  }

  // The first counts, but one that repeats what another rank said gives way to that.
  void Note(absl::Status status) {
    const auto is_echo = [](const absl::Status& s) {
      return absl::StrContains(s.message(), "aborted by rank");
    };
    if (first_.ok() || (is_echo(first_) && !is_echo(status))) first_ = std::move(status);
  }

  bool HasEnded(const Child& child) {
    int status = 0;
    if (waitpid(child.pid, &status, WNOHANG) == 0) return false;
    if (WIFSIGNALED(status) && !killed_) {
      killed_rank_ = absl::StrCat("rank ", child.rank, " was ended by signal ", WTERMSIG(status),
                                  " (", strsignal(WTERMSIG(status)), ")");
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      ++failed_;
    } else if (child.rank == 0) {
      end_ = std::min(end_, absl::Now() + timeout_);
    }
    return true;
  }

  void KillAll() {
    if (failed_ == 0) {
      late_ = absl::StrCat("rank ", left_.front().rank, " had not ended ",
                           absl::FormatDuration(timeout_), " after rank 0");
    }
    for (const Child& child : left_) kill(child.pid, SIGKILL);
    killed_ = true;
    end_ = absl::InfiniteFuture();
  }

  absl::Status Outcome() const {
    if (failed_ == 0 && first_.ok()) return absl::OkStatus();
    if (!late_.empty()) return absl::DeadlineExceededError(late_);
    const std::string said(first_.message());
    if (!killed_rank_.empty()) {
      return absl::AbortedError(said.empty() ? killed_rank_
                                             : absl::StrCat(killed_rank_, "; ", said));
    }
    if (first_.ok()) return absl::InternalError("a rank failed and did not say why");
    return first_;
  }

  Pipe pipe_;
  const absl::Duration timeout_;
  std::vector<Child> left_;
  std::string inbox_;
  absl::Status first_;
  int failed_ = 0;
  bool killed_ = false;      // by us
  std::string killed_rank_;  // by somebody else
  std::string late_;
  absl::Time end_ = absl::InfiniteFuture();
};

// In the child, which ends here.
[[noreturn]] void RunRank(const CommOptions& options, const Fd& pipe, pid_t parent,
                          const std::function<absl::Status(const CommOptions&)>& run) {
  EndWithParent();
  if (getppid() != parent) _exit(1);  // it ended before that took effect
  const absl::Status status = run(options);
  if (!status.ok()) Report(pipe, status);
  std::fflush(nullptr);
  _exit(status.ok() ? 0 : 1);
}

}  // namespace

absl::Status SpawnRanks(int ranks, const CommOptions& base,
                        const std::function<absl::Status(const CommOptions& options)>& run) {
  CommOptions options = base;
  options.size = options.local_size = ranks;
  // Rank 0 takes this very socket over, so nobody else can get the port meanwhile. The others do
  // not keep it: with rank 0 it has to vanish.
  ASSIGN_OR_RETURN(Listener listener, Listen(0));
  options.store_port = listener.port;
  ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
  std::fflush(nullptr);
  const pid_t parent = getpid();
  std::vector<pid_t> pids;
  std::string refused;
  for (int rank = 0; rank < ranks && refused.empty(); ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      options.rank = options.local_rank = rank;
      if (rank == 0) {
        options.store_socket = listener.fd.get();
      } else {
        listener.fd.Reset();
      }
      pipe.read.Reset();
      RunRank(options, pipe.write, parent, run);
    }
    if (child < 0) refused = absl::StrCat("rank ", rank, ": fork: ", std::strerror(errno));
    pids.push_back(child);
  }
  listener.fd.Reset();
  Children children(std::move(pipe), base.timeout);
  if (!refused.empty()) {
    pids.pop_back();
    children.Fail(refused);
  }
  for (size_t rank = 0; rank < pids.size(); ++rank) {
    children.Add(static_cast<int>(rank), pids[rank]);
  }
  return children.Wait();
}

}  // namespace plinth::comm
