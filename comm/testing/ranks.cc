#include "plinth/comm/testing/ranks.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "plinth/comm/call/observer.h"
#include "plinth/comm/call/verdict.h"
#include "plinth/comm/net/socket.h"
#include "plinth/comm/recorder/dump.h"
#include "plinth/comm/transport/mem/connect.h"
#include "plinth/hardware/base/check.h"

namespace plinth::comm::testing {
namespace {

constexpr absl::Duration kDeath = absl::Seconds(10);  // of a process that SIGKILL was sent to

struct Child {
  pid_t pid;
  Fd reports;
};

Child Start(int rank, const std::function<std::string(int)>& body, const std::string& records) {
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  Fd reads(ends[0]);
  Fd writes(ends[1]);
  const pid_t pid = fork();
  CHECK_GE(pid, 0);
  if (pid == 0) {
    setenv("PLINTH_COMM_DUMP_DIR", records.c_str(), 1);
    const std::string report = body(rank);
    const ssize_t written = write(writes.get(), report.data(), report.size());
    _exit(written == static_cast<ssize_t>(report.size()) ? 0 : 1);
  }
  return {pid, std::move(reads)};
}

// Reads to the end of the report; false when the deadline comes first.
bool ReadReport(int pipe, absl::Time deadline, std::string& report) {
  char chunk[4096];
  while (true) {
    const int64_t left = absl::ToInt64Milliseconds(deadline - absl::Now());
    pollfd entry{.fd = pipe, .events = POLLIN, .revents = 0};
    const int ready = poll(&entry, 1, static_cast<int>(std::max<int64_t>(0, left)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t got = read(pipe, chunk, sizeof(chunk));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    report.append(chunk, static_cast<size_t>(got));
  }
}

// False when the deadline comes first.
bool Reap(pid_t pid, absl::Time deadline, int& status) {
  while (true) {
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    CHECK_GE(ended, 0) << std::strerror(errno);
    if (ended == pid) return true;
    if (absl::Now() >= deadline) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
}

std::string CallText(const RecordedCall& call, std::string_view group) {
  return absl::StrCat(call.state == CallState::kArrived ? "moving data in " : "waiting in ",
                      ToString(call.print, group), " at ", call.file, ":", call.line);
}

// What the process was doing in each of its groups, from its flight records.
std::string Doing(pid_t pid, const std::string& records) {
  const absl::StatusOr<DumpDirectory> directory = ReadDumpDirectory(records);
  std::vector<std::string> places;
  if (directory.ok()) {
    for (const FlightDump& dump : directory->dumps) {
      if (dump.process != pid) continue;
      const bool between = dump.calls.empty() || dump.calls.back().finished_ns != 0;
      places.push_back(between ? absl::StrCat("in no call of group ", dump.group,
                                              ", of which it made ", dump.calls_made)
                               : CallText(dump.calls.back(), dump.group));
    }
  }
  return places.empty() ? "in no group that it recorded" : absl::StrJoin(places, "; ");
}

void Conclude(int status, RankOutcome& outcome) {
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
    outcome.report += "exit code " + std::to_string(WEXITSTATUS(status));
  }
}

// The calls that a rank between threads is in.
class CallWatch final : public CallObserver {
 public:
  uint32_t GroupFormed(const GroupInfo& group) override {
    std::lock_guard lock(mutex_);
    groups_.push_back(group.name);
    return static_cast<uint32_t>(groups_.size() - 1);
  }
  void GroupEnded(uint32_t) override {}
  uint64_t Queued(uint32_t group, const CollectiveCall& call) override {
    std::lock_guard lock(mutex_);
    calls_[++next_] = {group, "queued before", call.print, call.site};
    return next_;
  }
  void Started(uint64_t call, uint64_t sequence) override {
    std::lock_guard lock(mutex_);
    calls_[call].print.sequence = sequence;
    calls_[call].state = "waiting in";
  }
  void Arrived(uint64_t call) override {
    std::lock_guard lock(mutex_);
    calls_[call].state = "moving data in";
  }
  void Finished(uint64_t call, const absl::Status&, int64_t, int64_t) override {
    std::lock_guard lock(mutex_);
    calls_.erase(call);
  }

  std::string Doing() {
    std::lock_guard lock(mutex_);
    std::vector<std::string> places;
    for (const auto& [id, call] : calls_) {
      places.push_back(absl::StrCat(call.state, " ", ToString(call.print, groups_[call.group]),
                                    SiteText(call.site.file, call.site.line)));
    }
    return places.empty() ? absl::StrCat("in no call, of which it made ", next_)
                          : absl::StrJoin(places, "; ");
  }

 private:
  struct Call {
    uint32_t group = 0;
    const char* state = "";
    Fingerprint print;
    CallSite site;
  };
  std::mutex mutex_;  // guards what follows
  std::vector<std::string> groups_;
  std::map<uint64_t, Call> calls_;
  uint64_t next_ = 0;
};

// Which ranks have ended.
class Endings {
 public:
  explicit Endings(int size) : ended_(size) {}
  void Add(int rank) {
    std::lock_guard lock(mutex_);
    ended_[rank] = true;
    changed_.notify_all();
  }
  // Those that have not ended by then.
  std::vector<int> Await(absl::Time deadline) {
    std::unique_lock lock(mutex_);
    const auto all = [this] {
      return std::find(ended_.begin(), ended_.end(), false) == ended_.end();
    };
    changed_.wait_until(lock, absl::ToChronoTime(deadline), all);
    std::vector<int> missing;
    for (size_t rank = 0; rank < ended_.size(); ++rank) {
      if (!ended_[rank]) missing.push_back(static_cast<int>(rank));
    }
    return missing;
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<bool> ended_;
};

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

absl::Duration RanksPatience() {
  const char* text = std::getenv("TEST_TIMEOUT");
  int seconds = 0;
  const bool known = text != nullptr && absl::SimpleAtoi(text, &seconds);
  return known ? 0.75 * absl::Seconds(seconds) : absl::Minutes(2);
}

std::vector<RankOutcome> RunProcesses(int size, const std::function<std::string(int)>& body,
                                      absl::Duration patience) {
  const char* temporary = std::getenv("TEST_TMPDIR");
  std::string records = absl::StrCat(temporary == nullptr ? "/tmp" : temporary, "/ranksXXXXXX");
  CHECK(mkdtemp(records.data()) != nullptr) << records;
  const absl::Time deadline = absl::Now() + patience;
  std::vector<Child> children;
  for (int rank = 0; rank < size; ++rank) children.push_back(Start(rank, body, records));
  std::vector<RankOutcome> outcomes(size);
  std::vector<int> statuses(size);
  std::vector<int> hanging;
  for (int rank = 0; rank < size; ++rank) {
    const Child& child = children[rank];
    const bool ended = ReadReport(child.reports.get(), deadline, outcomes[rank].report) &&
                       Reap(child.pid, deadline, statuses[rank]);
    if (!ended) hanging.push_back(rank);
  }
  // Of all before the first is killed: ranks that see another die end by themselves.
  for (const int rank : hanging) {
    absl::StrAppend(&outcomes[rank].report, "rank ", rank, " has not ended within ",
                    absl::FormatDuration(patience), ": it is ", Doing(children[rank].pid, records));
  }
  for (const int rank : hanging) kill(children[rank].pid, SIGKILL);
  for (const int rank : hanging) {
    CHECK(Reap(children[rank].pid, absl::Now() + kDeath, statuses[rank]))
        << "cannot kill " << children[rank].pid;
  }
  for (int rank = 0; rank < size; ++rank) Conclude(statuses[rank], outcomes[rank]);
  std::filesystem::remove_all(records);
  return outcomes;
}

std::vector<std::string> RunThreads(int size, absl::Duration timeout,
                                    const std::function<std::string(Communicator&)>& body,
                                    absl::Duration patience) {
  const auto options = [timeout](int) {
    GroupOptions group;
    group.timeout = timeout;
    return group;
  };
  return RunThreads(size, options, body, patience);
}

std::vector<std::string> RunThreads(int size, const std::function<GroupOptions(int rank)>& options,
                                    const std::function<std::string(Communicator&)>& body,
                                    absl::Duration patience) {
  ThreadGroups groups;
  std::vector<std::unique_ptr<Transport>> ends = ConnectMem(size);
  std::vector<std::string> reports(size);
  std::vector<std::shared_ptr<CallWatch>> watches(size);
  Endings endings(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    watches[rank] = std::make_shared<CallWatch>();
    threads.emplace_back([&, rank] {
      {
        GroupOptions group = options(rank);
        if (group.observer == nullptr) group.observer = watches[rank];
        group.connector = [&groups](const GroupPlan& plan, absl::Time) {
          GroupLinks links;
          links.transport = groups.Connect(plan);
          return links;
        };
        Communicator comm(std::move(ends[rank]), std::move(group));
        reports[rank] = body(comm);
      }
      endings.Add(rank);
    });
  }
  const std::vector<int> missing = endings.Await(absl::Now() + patience);
  std::string doing;
  for (const int rank : missing) {
    absl::StrAppend(&doing, "; rank ", rank, " is ", watches[rank]->Doing());
  }
  CHECK(missing.empty()) << missing.size() << " of " << size << " ranks have not ended within "
                         << absl::FormatDuration(patience) << doing;
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
