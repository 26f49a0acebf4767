#include "plinth/train/testing/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/time/clock.h"
#include "plinth/config/loader/loader.h"
#include "plinth/hardware/base/check.h"

namespace plinth::train::testing {

Process::Process(const std::vector<std::string>& arguments, const std::string& stderr_path,
                 const std::vector<std::pair<std::string, std::string>>& environment) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_ = ::fork();
  CHECK_GE(pid_, 0);
  if (pid_ > 0) return;
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  const int err = ::open(stderr_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const int out = ::open("/dev/null", O_WRONLY);
  ::dup2(err, STDERR_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

Process::~Process() {
  if (ended_) return;
  Signal(SIGKILL);
  Wait();
}

void Process::Signal(int signal) {
  if (!ended_) CHECK_EQ(::kill(pid_, signal), 0);
}

int Process::Wait() {
  CHECK(EndsWithin(absl::Minutes(1)));
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
}

bool Process::EndsWithin(absl::Duration limit) {
  const absl::Time deadline = absl::Now() + limit;
  while (!ended_) {
    const pid_t done = ::waitpid(pid_, &status_, WNOHANG);
    CHECK_GE(done, 0);
    ended_ = done == pid_;
    if (ended_ || absl::Now() >= deadline) break;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return ended_;
}

std::vector<std::string> TrainCommand(const config::RunConfig& config) {
  const std::string path = config.train().run_dir() + ".textproto";
  std::ofstream(path) << config::ToText(config);
  return {"train/train", "--config=" + path};
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace plinth::train::testing
