#include "plinth/comm/rendezvous/environment.h"

#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plinth/comm/rendezvous/launchers.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr const char kNone[] = "none";

// The launcher to follow; null for a world of one.
absl::StatusOr<const Launcher*> ChooseLauncher(const EnvironmentValues& values) {
  const std::string asked = values.Text("PLINTH_LAUNCHER");
  if (asked == kNone) return nullptr;
  std::vector<std::string> names;
  for (const Launcher& launcher : Launchers()) {
    names.push_back(launcher.name);
    if (asked.empty() ? launcher.started(values) : asked == launcher.name) return &launcher;
  }
  if (!asked.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("PLINTH_LAUNCHER=\"", asked, "\" is none of ",
                                                   absl::StrJoin(names, ", "), ", ", kNone));
  }
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"}) {
    if (!values.Has(name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        name, " is set, but no launcher's variables such as RANK and WORLD_SIZE are: set them, or ",
        "PLINTH_LAUNCHER=", kNone, " for a world of one"));
  }
  return nullptr;
}

// Other launchers that started this process, or one of its parents; an error when one of them
// counts more processes than the chosen one has ranks.
absl::StatusOr<std::vector<std::string>> OthersAround(const EnvironmentValues& values,
                                                      const Launcher& chosen, int size) {
  std::vector<std::string> others;
  for (const Launcher& other : Launchers()) {
    if (&other == &chosen || !other.started(values)) continue;
    others.push_back(other.name);
    const char* name = other.size_variable(values);
    const absl::StatusOr<int> its_size = values.Number(name, 1, INT32_MAX);
    if (!its_size.ok() || *its_size <= size) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        chosen.size_variable(values), "=", size, " (", chosen.name, ") is less than ", name, "=",
        *its_size, " (", other.name, "): unset what is left over, or set PLINTH_LAUNCHER to the ",
        "one to follow"));
  }
  return others;
}

absl::Status ReadTransport(const EnvironmentValues& values, CommOptions& options) {
  const std::string transport = values.Text("PLINTH_TRANSPORT");
  if (transport == "shm") {
    options.transport = TransportKind::kShm;
  } else if (transport == "tcp") {
    options.transport = TransportKind::kTcp;
  } else if (transport == "mpi") {
    options.transport = TransportKind::kMpi;
  } else if (transport == "nccl") {
    options.transport = TransportKind::kNccl;
  } else if (!transport.empty() && transport != "auto") {
    return absl::InvalidArgumentError(
        absl::StrCat("PLINTH_TRANSPORT=\"", transport, "\" is none of auto, shm, tcp, mpi, nccl"));
  }
  return absl::OkStatus();
}

absl::Status ReadExtras(const EnvironmentValues& values, CommOptions& options) {
  if (values.Has("PLINTH_RUN_ID")) options.run_id = values.Text("PLINTH_RUN_ID");
  RETURN_IF_ERROR(ReadTransport(values, options));
  if (values.Has("PLINTH_NCCL_LIBRARY")) options.nccl_library = values.Text("PLINTH_NCCL_LIBRARY");
  options.interfaces = values.Text("PLINTH_SOCKET_IFNAME");
  if (values.Has("PLINTH_TCP_STREAMS")) {
    ASSIGN_OR_RETURN(options.tcp_streams, values.Number("PLINTH_TCP_STREAMS", 1, kMostTcpStreams));
  }
  options.algorithm = values.Text("PLINTH_COMM_ALGORITHM");
  options.tuning = values.Text("PLINTH_COMM_TUNING");
  const std::string timeout = values.Text("PLINTH_COMM_TIMEOUT");
  if (!timeout.empty() && (!absl::ParseDuration(timeout, &options.timeout) ||
                           options.timeout <= absl::ZeroDuration())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "PLINTH_COMM_TIMEOUT=\"", timeout, "\" is not a duration above zero such as 60s or 5m"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CommOptions> OptionsFromEnvironment(const EnvironmentLookup& lookup) {
  const EnvironmentValues values(lookup);
  CommOptions options;
  ASSIGN_OR_RETURN(const Launcher* launcher, ChooseLauncher(values));
  if (launcher != nullptr) {
    RETURN_IF_ERROR(launcher->read(values, options)) << launcher->name;
    ASSIGN_OR_RETURN(std::vector<std::string> others,
                     OthersAround(values, *launcher, options.size));
    options.launcher = launcher->name;
    if (!others.empty()) {
      absl::StrAppend(&options.launcher, " inside ", absl::StrJoin(others, ", "));
    }
  }
  RETURN_IF_ERROR(ReadExtras(values, options));
  if (options.transport == TransportKind::kNccl) options.device = options.local_rank;
  return options;
}

absl::StatusOr<CommOptions> OptionsFromEnvironment() {
  return OptionsFromEnvironment([](const char* name) { return std::getenv(name); });
}

std::string ExplainOptions(const CommOptions& o) {
  std::string text = absl::StrCat(o.launcher.empty() ? "no launcher" : o.launcher, ": rank ",
                                  o.rank, " of ", o.size);
  if (o.size == 1) return text;
  absl::StrAppend(&text, ", ", o.local_rank, " of ", o.local_size, " on this host; ranks meet at ",
                  o.store_host, ":", o.store_port);
  if (o.store_ports > 1) absl::StrAppend(&text, "-", o.store_port + o.store_ports - 1);
  if (!o.run_id.empty()) absl::StrAppend(&text, " as launch \"", o.run_id, "\"");
  return text;
}

}  // namespace plinth::comm
