#include "plinth/comm/bench/launch/launch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "plinth/comm/net/socket.h"

namespace plinth::comm {
namespace {

constexpr const char* kPromises[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                     "SLURM_NTASKS"};

constexpr int kNoProgram = 127;  // an exit code, as shells have it

// Prints each line that comes in to stderr, unless it did before. Whether there was any.
bool PassOnOnce(const Fd& source) {
  std::set<std::string> said;
  std::string inbox;
  char chunk[4096];
  ssize_t got = 0;
  while ((got = read(source.get(), chunk, sizeof(chunk))) > 0 || (got < 0 && errno == EINTR)) {
    if (got > 0) inbox.append(chunk, static_cast<size_t>(got));
    for (size_t end = 0; (end = inbox.find('\n')) != std::string::npos; inbox.erase(0, end + 1)) {
      const std::string line = inbox.substr(0, end + 1);
      if (said.insert(line).second) std::fputs(line.c_str(), stderr);
    }
  }
  return !said.empty();
}

}  // namespace

absl::Status CheckPromisedRanks(const EnvironmentLookup& lookup, int seen) {
  for (const char* name : kPromises) {
    const char* text = lookup(name);
    int promised = 0;
    if (text == nullptr || !absl::SimpleAtoi(text, &promised) || promised <= seen) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(name, "=", promised, " promises ", promised, " ranks, but this process sees ",
                     seen, ": nothing is measured, as each would report a run of its own. Unset ",
                     name, " to start ranks here (--ranks)"));
  }
  return absl::OkStatus();
}

bool UnderMpirun(const EnvironmentLookup& lookup) {
  return lookup("OMPI_COMM_WORLD_SIZE") != nullptr;
}

absl::StatusOr<int> RunUnderMpirun(int ranks, char** argv) {
  // The program's own path: argv[0] may be relative to a directory that mpirun does not keep.
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (length < 0) return absl::ErrnoToStatus(errno, "/proc/self/exe");
  path[length] = '\0';
  // Quiet: of a rank that fails, what it says itself is enough.
  std::vector<std::string> words = {
      "mpirun", "--allow-run-as-root", "--oversubscribe", "--quiet", "-n", absl::StrCat(ranks),
      path};
  for (char** argument = argv + 1; *argument != nullptr; ++argument) words.push_back(*argument);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe");
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  const pid_t child = fork();
  if (child < 0) return absl::ErrnoToStatus(errno, "fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // on which it ends its ranks and cleans up
    dup2(write_end.get(), STDERR_FILENO);
    execvp(arguments[0], arguments.data());
    _exit(kNoProgram);
  }
  write_end.Reset();
  const bool silent = !PassOnOnce(read_end);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  if (code != kNoProgram || !silent) return code;
  return absl::NotFoundError(
      "mpirun, which starts ranks with MPI, is not on PATH: apt-get install openmpi-bin");
}

void EndWithParent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

}  // namespace plinth::comm
