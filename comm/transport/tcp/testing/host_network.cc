#include "plinth/comm/transport/tcp/testing/host_network.h"

#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "plinth/comm/net/socket.h"
#include "plinth/comm/transport/tcp/testing/lossy_switch.h"
#include "plinth/hardware/base/check.h"

namespace plinth::comm::testing {
namespace {

bool Run(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

void RunOrDie(const std::string& command) { CHECK(Run(command)) << command; }

// Into a network namespace of its own; as an ordinary user by way of a user namespace.
bool LeaveNetwork() {
  return unshare(CLONE_NEWNET | CLONE_NEWUTS) == 0 ||
         unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWUTS) == 0;
}

// A veth device hands frames over with checksums to be filled in and larger than its MTU. The
// switch reads them as they are, so they must be complete.
void CompleteFrames(const char* device) {
  const Fd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  for (const uint32_t command : {ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO}) {
    ethtool_value value{command, 0};
    ifreq request{};
    std::strncpy(request.ifr_name, device, IFNAMSIZ - 1);
    request.ifr_data = reinterpret_cast<char*>(&value);
    CHECK_EQ(ioctl(fd.get(), SIOCETHTOOL, &request), 0) << std::strerror(errno);
  }
}

// The other side of a host's start: it says when it has a namespace, and hears when its cable is
// in.
struct Host {
  pid_t pid;
  Fd says;
  Fd hears;
};

void Configure(int host, const HostNetworkOptions& options) {
  const std::string name = absl::StrCat("host", host);
  CHECK_EQ(sethostname(name.data(), name.size()), 0);
  RunOrDie("ip link set lo up");
  if (!options.ipv4) RunOrDie("ip addr del 127.0.0.1/8 dev lo");
  if (options.delay > absl::ZeroDuration() || options.loss > 0) CompleteFrames("eth0");
  if (options.ipv4) RunOrDie(absl::StrCat("ip addr add ", HostAddress(host), "/24 dev eth0"));
  RunOrDie(absl::StrCat("ip addr add ", HostAddress(host, false), "/64 dev eth0 nodad"));
  RunOrDie("ip link set eth0 up");
}

Host Start(int host, const HostNetworkOptions& options, const std::function<std::string(int)>& body,
           int report) {
  int ready[2];
  int go[2];
  CHECK_EQ(pipe(ready), 0);
  CHECK_EQ(pipe(go), 0);
  const pid_t pid = fork();
  CHECK_GE(pid, 0);
  if (pid != 0) {
    close(ready[1]);
    close(go[0]);
    return {pid, Fd(ready[0]), Fd(go[1])};
  }
  close(ready[0]);
  close(go[1]);
  char byte = 0;
  CHECK_EQ(unshare(CLONE_NEWNET | CLONE_NEWUTS), 0);
  CHECK_EQ(write(ready[1], "r", 1), 1);
  CHECK_EQ(read(go[0], &byte, 1), 1);
  Configure(host, options);
  CHECK_EQ(write(ready[1], "c", 1), 1);
  CHECK_EQ(read(go[0], &byte, 1), 1);
  const std::string text = body(host);
  const ssize_t written = write(report, text.data(), text.size());
  _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
}

void Hear(const Host& host) {
  char byte = 0;
  CHECK_EQ(read(host.says.get(), &byte, 1), 1) << "a host did not start";
}
void Tell(const Host& host) { CHECK_EQ(write(host.hears.get(), "g", 1), 1); }

// In the process of the switch.
std::vector<RankOutcome> RunAroundSwitch(const HostNetworkOptions& options,
                                         const std::function<std::string(int)>& body,
                                         const std::function<void()>& meanwhile) {
  const bool bridged = options.delay == absl::ZeroDuration() && options.loss == 0;
  if (bridged) {
    RunOrDie("ip link add name bridge type bridge");
    RunOrDie("ip link set bridge up");
  }
  std::vector<Host> hosts;
  std::vector<Fd> reports;
  std::vector<std::string> cables;
  for (int i = 0; i < options.hosts; ++i) {
    int report[2];
    CHECK_EQ(pipe(report), 0);
    reports.emplace_back(report[0]);
    hosts.push_back(Start(i, options, body, report[1]));
    close(report[1]);
    Hear(hosts[i]);
    cables.push_back(absl::StrCat("s", i));
    RunOrDie(absl::StrCat("ip link add name ", cables[i], " type veth peer name eth0 netns ",
                          hosts[i].pid));
    if (bridged) RunOrDie(absl::StrCat("ip link set ", cables[i], " master bridge"));
    RunOrDie(absl::StrCat("ip link set ", cables[i], " up"));
    Tell(hosts[i]);
    Hear(hosts[i]);
  }
  std::unique_ptr<LossySwitch> lossy;
  if (!bridged) lossy = std::make_unique<LossySwitch>(cables, options.delay, options.loss);
  for (const Host& host : hosts) Tell(host);
  meanwhile();
  std::vector<RankOutcome> outcomes(options.hosts);
  for (int i = 0; i < options.hosts; ++i) {
    char chunk[4096];
    for (ssize_t got; (got = read(reports[i].get(), chunk, sizeof(chunk))) > 0;) {
      outcomes[i].report.append(chunk, static_cast<size_t>(got));
    }
    int status = 0;
    CHECK_EQ(waitpid(hosts[i].pid, &status, 0), hosts[i].pid);
    if (WIFSIGNALED(status)) outcomes[i].signal = WTERMSIG(status);
  }
  return outcomes;
}

}  // namespace

std::string HostAddress(int host, bool ipv4) {
  return absl::StrCat(ipv4 ? "10.77.0." : "fd77::", host + 1);
}

void CutCable(int host) { RunOrDie(absl::StrCat("ip link set s", host, " down")); }

absl::Status CheckHostNetwork() {
  if (!Run("ip -V")) return absl::UnavailableError("no tool `ip` (iproute2)");
  const pid_t pid = fork();
  if (pid == 0) {
    _exit(LeaveNetwork() && Run("ip link add name cable0 type veth peer name cable1") &&
                  Run("ip link add name bridge type bridge")
              ? 0
              : 1);
  }
  int status = 0;
  if (waitpid(pid, &status, 0) != pid || status != 0) {
    return absl::PermissionDeniedError("may not make network namespaces, cables and bridges");
  }
  return absl::OkStatus();
}

// The switch too is a process of its own: the caller stays in its network.
std::vector<RankOutcome> RunHosts(const HostNetworkOptions& options,
                                  const std::function<std::string(int)>& body,
                                  const std::function<void()>& meanwhile) {
  int report[2];
  CHECK_EQ(pipe(report), 0);
  const pid_t pid = fork();
  CHECK_GE(pid, 0);
  if (pid == 0) {
    close(report[0]);
    CHECK(LeaveNetwork());
    for (const RankOutcome& outcome : RunAroundSwitch(options, body, meanwhile)) {
      // A report ends with a zero byte.
      const std::string text = outcome.report + '\0';
      CHECK_EQ(write(report[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    _exit(0);
  }
  close(report[1]);
  const Fd reads(report[0]);
  std::string text;
  char chunk[4096];
  for (ssize_t got; (got = read(reads.get(), chunk, sizeof(chunk))) > 0;) {
    text.append(chunk, static_cast<size_t>(got));
  }
  int status = 0;
  CHECK_EQ(waitpid(pid, &status, 0), pid);
  std::vector<RankOutcome> outcomes(options.hosts);
  for (RankOutcome& outcome : outcomes) {
    const size_t end = text.find('\0');
    outcome.report = end == std::string::npos ? "no report" : text.substr(0, end);
    text.erase(0, end == std::string::npos ? end : end + 1);
  }
  return outcomes;
}

}  // namespace plinth::comm::testing
