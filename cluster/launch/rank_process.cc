#include "plinth/cluster/launch/rank_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace plinth::cluster {
namespace {

// A line longer than this is passed on in pieces, so that a rank cannot fill our memory.
constexpr size_t kLongestLine = 1 << 16;

absl::Status ErrnoError(const char* what) {
  return absl::ResourceExhaustedError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// Runs in the child between fork and exec: only async-signal-safe calls.
[[noreturn]] void Exec(char* const* argv, char* const* envp, pid_t parent, int out, int err,
                       int report) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A launcher that died before prctl leaves no signal: its pid is no longer our parent.
  if (getppid() != parent) _exit(127);
  // The terminal's Ctrl-C reaches the launcher alone, which passes it on once.
  setpgid(0, 0);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  execvpe(argv[0], argv, envp);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(report, &error, sizeof(error));
  _exit(127);
}

}  // namespace

LineCopier::LineCopier(int from, int to, std::string prefix, Wanted wanted)
    : from_(from), to_(to), prefix_(std::move(prefix)), wanted_(std::move(wanted)) {
  fcntl(from_, F_SETFL, O_NONBLOCK);
}

LineCopier::~LineCopier() {
  if (from_ >= 0) close(from_);
}

void LineCopier::Write(const std::string& line) {
  if (!wanted_(line)) return;
  const std::string text = prefix_ + line + "\n";
  // A closed terminal is no reason to stop a training run.
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(to_, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    done += static_cast<size_t>(n);
  }
}

void LineCopier::Pump() {
  char buffer[8192];
  while (from_ >= 0) {
    const ssize_t n = read(from_, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      if (!partial_.empty()) Write(partial_);
      partial_.clear();
      close(from_);
      from_ = -1;
      return;
    }
    for (ssize_t i = 0; i < n; ++i) {
      if (buffer[i] == '\n' || partial_.size() >= kLongestLine) {
        Write(partial_);
        partial_.clear();
      }
      if (buffer[i] != '\n') partial_ += buffer[i];
    }
  }
}

RankProcess::RankProcess(pid_t pid, int out, int err, const std::string& prefix,
                         LineCopier::Wanted wanted_errors)
    : pid_(pid),
      out_(std::make_unique<LineCopier>(out, STDOUT_FILENO, prefix,
                                        [](const std::string&) { return true; })),
      err_(std::make_unique<LineCopier>(err, STDERR_FILENO, prefix, std::move(wanted_errors))) {}

absl::StatusOr<std::unique_ptr<RankProcess>> RankProcess::Start(
    const std::vector<std::string>& command, const Environment& environment,
    const std::string& output_prefix, LineCopier::Wanted wanted_errors) {
  std::vector<char*> argv;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  // Ours come first: getenv takes the first match.
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  std::vector<char*> envp;
  for (std::string& variable : variables) envp.push_back(variable.data());
  for (char** inherited = environ; *inherited != nullptr; ++inherited) {
    const absl::string_view entry(*inherited);
    bool replaced = false;
    for (const auto& [name, value] : environment) {
      replaced |= entry.size() > name.size() && entry.substr(0, name.size()) == name &&
                  entry[name.size()] == '=';
    }
    if (!replaced) envp.push_back(*inherited);
  }
  envp.push_back(nullptr);

  int fds[3][2];  // stdout, stderr, exec's errno
  for (auto& pipe_fds : fds) {
    if (pipe2(pipe_fds, O_CLOEXEC) != 0) return ErrnoError("no pipe for a rank's output");
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) Exec(argv.data(), envp.data(), parent, fds[0][1], fds[1][1], fds[2][1]);
  const int fork_errno = errno;
  for (auto& pipe_fds : fds) close(pipe_fds[1]);
  if (pid < 0) {
    for (auto& pipe_fds : fds) close(pipe_fds[0]);
    errno = fork_errno;
    return ErrnoError("cannot start a rank");
  }
  auto process = std::unique_ptr<RankProcess>(
      new RankProcess(pid, fds[0][0], fds[1][0], output_prefix, std::move(wanted_errors)));
  // exec closes the report pipe; an errno in it means that exec failed.
  int exec_errno = 0;
  ssize_t n;
  do {
    n = read(fds[2][0], &exec_errno, sizeof(exec_errno));
  } while (n < 0 && errno == EINTR);
  close(fds[2][0]);
  if (n == sizeof(exec_errno)) {
    return absl::NotFoundError(
        absl::StrCat("cannot run \"", command[0], "\": ", std::strerror(exec_errno)));
  }
  return process;
}

RankProcess::~RankProcess() {
  if (wait_status_.has_value()) return;
  Signal(SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool RankProcess::Reap() {
  int status = 0;
  if (!wait_status_.has_value() && waitpid(pid_, &status, WNOHANG) == pid_) wait_status_ = status;
  return wait_status_.has_value();
}

void RankProcess::Signal(int signal) {
  // Never signal a reaped pid: it may belong to somebody else by now.
  if (!wait_status_.has_value()) kill(pid_, signal);
}

}  // namespace plinth::cluster
