#include "plinth/comm/testing/ranks.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "plinth/comm/net/socket.h"
#include "plinth/comm/transport/mem/connect.h"
#include "plinth/hardware/base/check.h"

namespace plinth::comm::testing {
namespace {

struct Child {
  pid_t pid;
  Fd reports;
};

Child Start(int rank, const std::function<std::string(int)>& body) {
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  Fd reads(ends[0]);
  Fd writes(ends[1]);
  const pid_t pid = fork();
  CHECK_GE(pid, 0);
  if (pid == 0) {
    const std::string report = body(rank);
    const ssize_t written = write(writes.get(), report.data(), report.size());
    _exit(written == static_cast<ssize_t>(report.size()) ? 0 : 1);
  }
  return {pid, std::move(reads)};
}

RankOutcome Finish(const Child& child) {
  RankOutcome outcome;
  char chunk[4096];
  while (true) {
    const ssize_t got = read(child.reports.get(), chunk, sizeof(chunk));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    outcome.report.append(chunk, static_cast<size_t>(got));
  }
  int status = 0;
  CHECK_EQ(waitpid(child.pid, &status, 0), child.pid);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
    outcome.report += "exit code " + std::to_string(WEXITSTATUS(status));
  }
  return outcome;
}

// Connects the threads of one process into the groups that they split into.
class ThreadGroups {
 public:
  std::unique_ptr<Transport> Connect(const GroupPlan& plan) {
    std::lock_guard lock(mutex_);
    auto& ends = ends_[plan.path];
    if (ends.empty()) ends = ConnectMem(plan.size);
    return std::move(ends[plan.rank]);
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::map<std::string, std::vector<std::unique_ptr<Transport>>> ends_;
};

}  // namespace

std::vector<RankOutcome> RunProcesses(int size, const std::function<std::string(int)>& body) {
  std::vector<Child> children;
  for (int rank = 0; rank < size; ++rank) children.push_back(Start(rank, body));
  std::vector<RankOutcome> outcomes;
  for (const Child& child : children) outcomes.push_back(Finish(child));
  return outcomes;
}

std::vector<std::string> RunThreads(int size, absl::Duration timeout,
                                    const std::function<std::string(Communicator&)>& body) {
  const auto options = [timeout](int) {
    GroupOptions group;
    group.timeout = timeout;
    return group;
  };
  return RunThreads(size, options, body);
}

std::vector<std::string> RunThreads(int size, const std::function<GroupOptions(int rank)>& options,
                                    const std::function<std::string(Communicator&)>& body) {
  ThreadGroups groups;
  std::vector<std::unique_ptr<Transport>> ends = ConnectMem(size);
  std::vector<std::string> reports(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      GroupOptions group = options(rank);
      group.connector = [&groups](const GroupPlan& plan, absl::Time) {
        GroupLinks links;
        links.transport = groups.Connect(plan);
        return links;
      };
      Communicator comm(std::move(ends[rank]), std::move(group));
      reports[rank] = body(comm);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return reports;
}

CommOptions LocalOptions(int rank, int size, int port, TransportKind transport,
                         absl::Duration timeout) {
  CommOptions options;
  options.rank = options.local_rank = rank;
  options.size = options.local_size = size;
  options.transport = transport;
  options.store_port = port;
  options.timeout = timeout;
  return options;
}

int FreePort() {
  const absl::StatusOr<Listener> listener = Listen(0);
  CHECK_OK(listener.status());
  return listener->port;
}

}  // namespace plinth::comm::testing
