#include "plinth/tools/bench/peer_process.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

extern char** environ;

namespace plinth::tools {
namespace {

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Ours, with each variable of `extra` in place of one of the same name.
std::vector<std::string> Environment(const std::vector<std::string>& extra) {
  std::vector<std::string> all = extra;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable(*entry);
    const std::string name = variable.substr(0, variable.find('=') + 1);
    const bool replaced = std::any_of(extra.begin(), extra.end(), [&](const std::string& e) {
      return e.compare(0, name.size(), name) == 0;
    });
    if (!replaced) all.push_back(variable);
  }
  return all;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PeerProcess>> PeerProcess::Start(
    const std::vector<std::string>& argv, const std::vector<std::string>& extra) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::ErrnoToStatus(errno, "socketpair");
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<std::string> arguments = argv, environment = Environment(extra);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, argv[0].c_str(), &actions, nullptr,
                                   Pointers(arguments).data(), Pointers(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    return absl::ErrnoToStatus(error, argv[0] + ": cannot be started");
  }
  return std::unique_ptr<PeerProcess>(new PeerProcess(argv[0], pid, ends[0]));
}

PeerProcess::~PeerProcess() {
  ::close(socket_);
  for (int waited_ms = 0; waited_ms < 1000; waited_ms += 10) {
    if (::waitpid(pid_, nullptr, WNOHANG) == pid_) return;
    absl::SleepFor(absl::Milliseconds(10));
  }
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

absl::StatusOr<std::string> PeerProcess::Ask(const std::string& line, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  const std::string request = line.empty() ? "" : line + "\n";
  if (!request.empty() && ::send(socket_, request.data(), request.size(), MSG_NOSIGNAL) !=
                              static_cast<ssize_t>(request.size())) {
    return absl::UnavailableError(name_ + ": has ended");
  }
  while (true) {
    if (const size_t end = received_.find('\n'); end != std::string::npos) {
      const std::string reply = received_.substr(0, end);
      received_.erase(0, end + 1);
      return reply;
    }
    pollfd ready = {.fd = socket_, .events = POLLIN};
    const int64_t left_ms = absl::ToInt64Milliseconds(deadline - absl::Now());
    if (left_ms <= 0) {
      return absl::DeadlineExceededError(
          absl::StrCat(name_, ": no answer within ", absl::FormatDuration(timeout)));
    }
    if (::poll(&ready, 1, static_cast<int>(std::min<int64_t>(left_ms, 1000))) <= 0) continue;
    char bytes[4096];
    const ssize_t got = ::recv(socket_, bytes, sizeof(bytes), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return absl::UnavailableError(name_ + ": has ended");
    received_.append(bytes, static_cast<size_t>(got));
  }
}

}  // namespace plinth::tools
