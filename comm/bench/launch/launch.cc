#include "plinth/comm/bench/launch/launch.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "plinth/comm/net/socket.h"

namespace plinth::comm {
namespace {

constexpr const char* kPromises[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                     "SLURM_NTASKS"};

// Worst exit code of the children. When one failed the others have a moment to say what they
// know; one that still waits for it, as while a group forms, is ended.
int WaitForAll(const std::vector<pid_t>& children) {
  constexpr absl::Duration kLastWords = absl::Seconds(2);
  int worst = 0;
  std::vector<pid_t> left;
  for (const pid_t child : children) {
    if (child > 0) left.push_back(child);
  }
  if (left.size() < children.size()) worst = 1;
  absl::Time end = absl::InfiniteFuture();
  while (!left.empty()) {
    for (size_t i = 0; i < left.size();) {
      int status = 0;
      if (waitpid(left[i], &status, WNOHANG) == 0) {
        ++i;
        continue;
      }
      worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 1);
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (worst != 0) end = std::min(end, absl::Now() + kLastWords);
    if (absl::Now() >= end) {
      for (const pid_t child : left) kill(child, SIGKILL);
      end = absl::InfiniteFuture();
      continue;
    }
    absl::SleepFor(absl::Milliseconds(10));
  }
  return worst;
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

int SpawnRanks(int ranks, const CommOptions& base,
               const std::function<int(const CommOptions& options)>& run) {
  CommOptions options = base;
  options.size = options.local_size = ranks;
  {
    const absl::StatusOr<Listener> listener = Listen(0);
    if (!listener.ok()) {
      std::fprintf(stderr, "%s\n", std::string(listener.status().message()).c_str());
      return 1;
    }
    options.store_port = listener->port;  // free again at the end of this block
  }
  std::fflush(nullptr);
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      options.rank = options.local_rank = rank;
      const int code = run(options);
      std::fflush(nullptr);
      _exit(code);
    }
    if (child < 0) std::perror("fork");
    children.push_back(child);
  }
  return WaitForAll(children);
}

bool UnderMpirun(const EnvironmentLookup& lookup) {
  return lookup("OMPI_COMM_WORLD_SIZE") != nullptr;
}

absl::Status ExecUnderMpirun(int ranks, char** argv) {
  // The program's own path: argv[0] may be relative to a directory that mpirun does not keep.
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (length < 0) return absl::ErrnoToStatus(errno, "/proc/self/exe");
  path[length] = '\0';
  std::string count = absl::StrCat(ranks);
  std::vector<std::string> words = {"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", count,
                                    path};
  for (char** argument = argv + 1; *argument != nullptr; ++argument) words.push_back(*argument);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  if (errno == ENOENT) {
    return absl::NotFoundError("--vs=mpi needs mpirun: apt-get install openmpi-bin");
  }
  return absl::ErrnoToStatus(errno, "mpirun");
}

}  // namespace plinth::comm
