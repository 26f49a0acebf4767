#include "plinth/comm/rendezvous/launchers.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "plinth/comm/rendezvous/node_list.h"
#include "plinth/hardware/base/hash.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr int kMostRanks = 1 << 20;
constexpr int kMostPort = UINT16_MAX - kDerivedPorts;
constexpr int kFirstDerivedPort = 20000;
constexpr int kDerivedRange = 12000;

// The variables that place a rank, by what they hold.
struct PlaceNames {
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};

bool AnyOf(const EnvironmentValues& values, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return values.Has(name); });
}

// All or an error that names what is missing beside what is there.
absl::Status RequireAll(const EnvironmentValues& values, std::initializer_list<const char*> names) {
  std::vector<std::string> present;
  std::vector<std::string> missing;
  for (const char* name : names) (values.Has(name) ? present : missing).push_back(name);
  if (missing.empty()) return absl::OkStatus();
  const std::string all = absl::StrJoin(names, ", ");
  if (present.empty()) return absl::InvalidArgumentError(absl::StrCat("none of ", all, " is set"));
  return absl::InvalidArgumentError(absl::StrCat(
      absl::StrJoin(missing, ", "), " not set, though ", absl::StrJoin(present, ", "),
      present.size() == 1 ? " is" : " are", ": a launcher sets all of ", all, " or none"));
}

// `part` must lie below `whole`.
absl::Status CheckBelow(const char* part_name, int part, const char* whole_name, int whole) {
  if (part < whole) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(part_name, "=", part, " is not below ", whole_name, "=", whole));
}

absl::Status CheckPlace(const PlaceNames& names, const CommOptions& o) {
  RETURN_IF_ERROR(CheckBelow(names.rank, o.rank, names.size, o.size));
  RETURN_IF_ERROR(CheckBelow(names.local_rank, o.local_rank, names.local_size, o.local_size));
  if (o.local_size > o.size) {
    return absl::InvalidArgumentError(absl::StrCat(names.local_size, "=", o.local_size,
                                                   " is more than ", names.size, "=", o.size));
  }
  if (o.local_size == o.size && o.local_rank != o.rank) {
    return absl::InvalidArgumentError(
        absl::StrCat(names.local_rank, "=", o.local_rank, " differs from ", names.rank, "=", o.rank,
                     " though ", names.local_size, "=", o.local_size, " says all are on one host"));
  }
  return absl::OkStatus();
}

absl::Status ReadPlace(const EnvironmentValues& values, const PlaceNames& names,
                       CommOptions& options) {
  ASSIGN_OR_RETURN(options.size, values.Number(names.size, 1, kMostRanks));
  ASSIGN_OR_RETURN(options.rank, values.Number(names.rank, 0, kMostRanks));
  ASSIGN_OR_RETURN(options.local_size, values.Number(names.local_size, 1, kMostRanks));
  ASSIGN_OR_RETURN(options.local_rank, values.Number(names.local_rank, 0, kMostRanks));
  return CheckPlace(names, options);
}

// MASTER_ADDR and MASTER_PORT as they stand.
absl::Status ReadGivenMeeting(const EnvironmentValues& values, CommOptions& options) {
  RETURN_IF_ERROR(RequireAll(values, {"MASTER_ADDR", "MASTER_PORT"}));
  options.store_host = values.Text("MASTER_ADDR");
  ASSIGN_OR_RETURN(options.store_port, values.Number("MASTER_PORT", 1, kMostPort));
  return absl::OkStatus();
}

bool MeetingIsGiven(const EnvironmentValues& values) {
  return AnyOf(values, {"MASTER_ADDR", "MASTER_PORT"});
}

// Ranks meet at `host`, at a port that follows from the launch's identity.
void MeetAt(std::string host, CommOptions& options) {
  options.store_host = std::move(host);
  options.store_port = DerivedPort(options.run_id);
  options.store_ports = kDerivedPorts;
}

// --- torchrun ---------------------------------------------------------------------------------

bool StartedByTorchrun(const EnvironmentValues& values) {
  return AnyOf(values, {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"});
}
const char* TorchrunSize(const EnvironmentValues&) { return "WORLD_SIZE"; }

absl::Status ReadTorchrun(const EnvironmentValues& values, CommOptions& options) {
  RETURN_IF_ERROR(RequireAll(values, {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                                      "MASTER_ADDR", "MASTER_PORT"}));
  RETURN_IF_ERROR(
      ReadPlace(values, {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}, options));
  RETURN_IF_ERROR(ReadGivenMeeting(values, options));
  if (values.Text("TORCHELASTIC_USE_AGENT_STORE") == "True") ++options.store_port;
  options.run_id = values.Text("TORCHELASTIC_RUN_ID");
  return absl::OkStatus();
}

// --- OpenMPI ----------------------------------------------------------------------------------

bool StartedByOpenMpi(const EnvironmentValues& values) {
  return AnyOf(values, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"});
}
const char* OpenMpiSize(const EnvironmentValues&) { return "OMPI_COMM_WORLD_SIZE"; }

// Of `1234.0;tcp://10.0.0.1,192.168.0.1:4567`, perhaps in quotes and with more after a further
// semicolon: the addresses, by commas.
std::string AddressesOfUri(std::string uri) {
  uri.erase(std::remove(uri.begin(), uri.end(), '"'), uri.end());
  const std::vector<std::string> parts = absl::StrSplit(uri, ';');
  for (const std::string& part : parts) {
    if (!absl::StartsWith(part, "tcp://")) continue;
    const std::string addresses = part.substr(6);
    return addresses.substr(0, addresses.rfind(':'));
  }
  return "";
}

absl::Status ReadOpenMpi(const EnvironmentValues& values, CommOptions& options) {
  RETURN_IF_ERROR(RequireAll(values, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                      "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"}));
  RETURN_IF_ERROR(ReadPlace(values,
                            {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                             "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                            options));
  // mpirun's name of the job can come back, the port at which it listens cannot at one time.
  const std::string uri = values.Text("OMPI_MCA_orte_hnp_uri");
  options.run_id = absl::StrCat("openmpi ", values.Text("PMIX_NAMESPACE"), " ", uri);
  if (MeetingIsGiven(values)) return ReadGivenMeeting(values, options);
  if (options.local_size == options.size) {
    MeetAt("127.0.0.1", options);
    return absl::OkStatus();
  }
  const std::string addresses = AddressesOfUri(uri);
  if (addresses.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("OMPI_COMM_WORLD_SIZE=", options.size,
                     " ranks are on several hosts, but "
                     "OMPI_MCA_orte_hnp_uri=\"",
                     uri,
                     "\" has no address of mpirun's host: give rank 0's host "
                     "with mpirun -x MASTER_ADDR=... -x MASTER_PORT=..."));
  }
  MeetAt(addresses, options);
  return absl::OkStatus();
}

// --- Slurm ------------------------------------------------------------------------------------

bool StartedBySlurm(const EnvironmentValues& values) {
  return values.Has("SLURM_PROCID") && values.Has("SLURM_STEP_ID");
}
const char* SlurmSize(const EnvironmentValues& values) {
  return values.Either("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS");
}

// Tasks on this node and the name of the first node.
absl::Status ReadSlurmNodes(const EnvironmentValues& values, CommOptions& options,
                            std::string& first_node) {
  const char* tasks_name = values.Either("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE");
  const char* nodes_name = values.Either("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST");
  const char* size_name = SlurmSize(values);
  ASSIGN_OR_RETURN(const std::vector<int> tasks, ExpandTaskCounts(values.Text(tasks_name)),
                   _ << tasks_name);
  ASSIGN_OR_RETURN(const std::vector<std::string> nodes, ExpandNodeList(values.Text(nodes_name)),
                   _ << nodes_name);
  if (tasks.size() != nodes.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        tasks_name, "=", values.Text(tasks_name), " counts ", tasks.size(), " nodes, but ",
        nodes_name, "=", values.Text(nodes_name), " names ", nodes.size()));
  }
  const int64_t total = std::accumulate(tasks.begin(), tasks.end(), int64_t{0});
  if (total != options.size) {
    return absl::InvalidArgumentError(absl::StrCat(tasks_name, "=", values.Text(tasks_name),
                                                   " makes ", total, " tasks, but ", size_name, "=",
                                                   options.size));
  }
  ASSIGN_OR_RETURN(const int node, values.Number("SLURM_NODEID", 0, kMostNodes));
  RETURN_IF_ERROR(CheckBelow("SLURM_NODEID", node, nodes_name, static_cast<int>(nodes.size())));
  options.local_size = tasks[node];
  first_node = nodes.front();
  return absl::OkStatus();
}

absl::Status ReadSlurm(const EnvironmentValues& values, CommOptions& options) {
  const char* size_name = SlurmSize(values);
  const char* tasks_name = values.Either("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE");
  const char* nodes_name = values.Either("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST");
  RETURN_IF_ERROR(RequireAll(values, {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", size_name,
                                      tasks_name, nodes_name, "SLURM_JOB_ID", "SLURM_STEP_ID"}));
  ASSIGN_OR_RETURN(options.size, values.Number(size_name, 1, kMostRanks));
  ASSIGN_OR_RETURN(options.rank, values.Number("SLURM_PROCID", 0, kMostRanks));
  ASSIGN_OR_RETURN(options.local_rank, values.Number("SLURM_LOCALID", 0, kMostRanks));
  std::string first_node;
  RETURN_IF_ERROR(ReadSlurmNodes(values, options, first_node));
  RETURN_IF_ERROR(CheckPlace({"SLURM_PROCID", size_name, "SLURM_LOCALID", tasks_name}, options));
  options.run_id =
      absl::StrCat("slurm ", values.Text("SLURM_JOB_ID"), ".", values.Text("SLURM_STEP_ID"));
  if (MeetingIsGiven(values)) return ReadGivenMeeting(values, options);
  MeetAt(options.local_size == options.size ? "127.0.0.1" : first_node, options);
  return absl::OkStatus();
}

// --- Kubernetes -------------------------------------------------------------------------------

bool StartedByKubernetes(const EnvironmentValues& values) {
  return AnyOf(values, {"JOB_COMPLETION_INDEX", "PLINTH_WORLD_SIZE"});
}
const char* KubernetesSize(const EnvironmentValues&) { return "PLINTH_WORLD_SIZE"; }

absl::Status ReadKubernetes(const EnvironmentValues& values, CommOptions& options) {
  RETURN_IF_ERROR(RequireAll(values, {"JOB_COMPLETION_INDEX", "PLINTH_WORLD_SIZE"}));
  ASSIGN_OR_RETURN(options.size, values.Number("PLINTH_WORLD_SIZE", 1, kMostRanks));
  ASSIGN_OR_RETURN(options.rank, values.Number("JOB_COMPLETION_INDEX", 0, kMostRanks));
  RETURN_IF_ERROR(
      CheckBelow("JOB_COMPLETION_INDEX", options.rank, "PLINTH_WORLD_SIZE", options.size));
  options.local_rank = 0;
  options.local_size = 1;
  const std::string host = values.Text("HOSTNAME");
  const std::string suffix = absl::StrCat("-", options.rank);
  const std::string job(absl::StripSuffix(host, suffix));
  options.run_id = absl::StrCat("kubernetes ", job);
  if (MeetingIsGiven(values)) return ReadGivenMeeting(values, options);
  if (options.size == 1) return absl::OkStatus();
  RETURN_IF_ERROR(RequireAll(values, {"JOB_COMPLETION_INDEX", "HOSTNAME", "PLINTH_SERVICE"}));
  if (job == host || job.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("HOSTNAME=", host, " does not end in JOB_COMPLETION_INDEX=", options.rank,
                     ", so the name of index 0 is not known: set MASTER_ADDR and MASTER_PORT"));
  }
  MeetAt(absl::StrCat(job, "-0.", values.Text("PLINTH_SERVICE")), options);
  return absl::OkStatus();
}

constexpr Launcher kLaunchers[] = {
    {"torchrun", StartedByTorchrun, TorchrunSize, ReadTorchrun},
    {"openmpi", StartedByOpenMpi, OpenMpiSize, ReadOpenMpi},
    {"slurm", StartedBySlurm, SlurmSize, ReadSlurm},
    {"kubernetes", StartedByKubernetes, KubernetesSize, ReadKubernetes},
};

}  // namespace

std::span<const Launcher> Launchers() { return kLaunchers; }

int DerivedPort(std::string_view launch_identity) {
  const uint64_t hash = Fnv1a(launch_identity);
  return kFirstDerivedPort + static_cast<int>((hash ^ (hash >> 32)) % kDerivedRange);
}

}  // namespace plinth::comm
