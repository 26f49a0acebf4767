#include "plinth/comm/rendezvous/environment.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plinth/comm/rendezvous/launchers.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Variables = std::map<std::string, std::string>;

absl::StatusOr<CommOptions> Parse(const Variables& variables) {
  return OptionsFromEnvironment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Variables Good() {
  return {{"RANK", "5"},
          {"WORLD_SIZE", "8"},
          {"LOCAL_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "4"},
          {"MASTER_ADDR", "node0"},
          {"MASTER_PORT", "29500"}};
}

TEST(Environment, NothingSetIsAWorldOfOne) {
  ASSERT_OK_AND_ASSIGN(const CommOptions options, Parse({}));
  EXPECT_EQ(options.size, 1);
  EXPECT_EQ(options.rank, 0);
}

TEST(Environment, ReadsAllVariables) {
  Variables variables = Good();
  variables["PLINTH_TRANSPORT"] = "tcp";
  variables["PLINTH_COMM_TIMEOUT"] = "5m";
  variables["TORCHELASTIC_RUN_ID"] = "run7";
  ASSERT_OK_AND_ASSIGN(CommOptions options, Parse(variables));
  EXPECT_EQ(options.rank, 5);
  EXPECT_EQ(options.size, 8);
  EXPECT_EQ(options.local_rank, 1);
  EXPECT_EQ(options.local_size, 4);
  EXPECT_EQ(options.store_host, "node0");
  EXPECT_EQ(options.store_port, 29500);
  EXPECT_EQ(options.transport, TransportKind::kTcp);
  EXPECT_EQ(options.timeout, absl::Minutes(5));
  EXPECT_EQ(options.run_id, "run7");

  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  ASSERT_OK_AND_ASSIGN(options, Parse(variables));
  EXPECT_EQ(options.store_port, 29501);
}

TEST(Environment, ReadsEveryTransport) {
  const std::map<std::string, TransportKind> kTransports = {{"auto", TransportKind::kAuto},
                                                            {"shm", TransportKind::kShm},
                                                            {"tcp", TransportKind::kTcp},
                                                            {"mpi", TransportKind::kMpi},
                                                            {"nccl", TransportKind::kNccl}};
  for (const auto& [text, kind] : kTransports) {
    Variables variables = Good();
    variables["PLINTH_TRANSPORT"] = text;
    ASSERT_OK_AND_ASSIGN(const CommOptions options, Parse(variables));
    EXPECT_EQ(options.transport, kind) << text;
    // A device is bound only where one is used.
    EXPECT_EQ(options.device, text == "nccl" ? 1 : -1);
  }
}

TEST(Environment, EveryMissingVariableIsNamedInOneLine) {
  for (const auto& [name, value] : Good()) {
    Variables variables = Good();
    variables.erase(name);
    EXPECT_THAT(Parse(variables),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(name + " not set"), Not(HasSubstr("\n")))));
  }
  EXPECT_THAT(Parse({{"RANK", "0"}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("MASTER_ADDR, MASTER_PORT not set, though RANK is")));
  EXPECT_THAT(Parse({{"MASTER_ADDR", "node0"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("MASTER_ADDR is set, but")));
}

TEST(Environment, RefusesBadValuesAndContradictions) {
  const struct {
    const char* name;
    const char* value;
    const char* message;
  } kCases[] = {
      {"RANK", "two", "RANK=\"two\" is not a whole number"},
      {"RANK", "-1", "RANK=\"-1\""},
      {"RANK", "8", "RANK=8 is not below WORLD_SIZE=8"},
      {"WORLD_SIZE", "0", "WORLD_SIZE=\"0\""},
      {"WORLD_SIZE", "99999999999", "WORLD_SIZE=\"99999999999\""},
      {"LOCAL_RANK", "4", "LOCAL_RANK=4 is not below LOCAL_WORLD_SIZE=4"},
      {"LOCAL_WORLD_SIZE", "9", "LOCAL_WORLD_SIZE=9 is more than WORLD_SIZE=8"},
      {"LOCAL_WORLD_SIZE", "8", "LOCAL_RANK=1 differs from RANK=5"},
      {"MASTER_PORT", "70000", "MASTER_PORT=\"70000\""},
      {"PLINTH_LAUNCHER", "pbs", "none of torchrun, openmpi, slurm, kubernetes, none"},
      {"PLINTH_TCP_STREAMS", "17", "PLINTH_TCP_STREAMS=\"17\""},
      {"PLINTH_TRANSPORT", "ib", "none of auto, shm, tcp, mpi, nccl"},
      {"PLINTH_COMM_TIMEOUT", "soon", "PLINTH_COMM_TIMEOUT=\"soon\""},
      {"PLINTH_COMM_TIMEOUT", "0s", "PLINTH_COMM_TIMEOUT=\"0s\""},
  };
  for (const auto& c : kCases) {
    Variables variables = Good();
    variables[c.name] = c.value;
    EXPECT_THAT(Parse(variables),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)));
  }
}

// Every set of variables as the launcher itself makes it, and what follows from it.
Variables OpenMpi() {
  return {{"OMPI_COMM_WORLD_RANK", "2"},
          {"OMPI_COMM_WORLD_SIZE", "4"},
          {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
          {"PMIX_NAMESPACE", "1517092865"},
          {"OMPI_MCA_orte_hnp_uri", "1517092864.0;tcp://10.1.0.5,192.168.7.5:44463"}};
}

Variables Slurm() {
  return {{"SLURM_PROCID", "5"},
          {"SLURM_LOCALID", "1"},
          {"SLURM_NODEID", "1"},
          {"SLURM_STEP_NUM_TASKS", "11"},
          {"SLURM_STEP_TASKS_PER_NODE", "4(x2),3"},
          {"SLURM_STEP_NODELIST", "n[07-08],gpu5"},
          {"SLURM_JOB_ID", "12"},
          {"SLURM_STEP_ID", "3"}};
}

Variables Kubernetes() {
  return {{"JOB_COMPLETION_INDEX", "3"},
          {"PLINTH_WORLD_SIZE", "8"},
          {"PLINTH_SERVICE", "ranks"},
          {"HOSTNAME", "train-3"}};
}

TEST(Environment, ReadsOpenMpi) {
  ASSERT_OK_AND_ASSIGN(CommOptions options, Parse(OpenMpi()));
  EXPECT_EQ(
      ExplainOptions(options),
      absl::StrCat("openmpi: rank 2 of 4, 0 of 2 on this host; ranks meet at ",
                   "10.1.0.5,192.168.7.5:", options.store_port, "-",
                   options.store_port + kDerivedPorts - 1, " as launch \"", options.run_id, "\""));
  EXPECT_GE(options.store_port, 20000);
  EXPECT_LT(options.store_port + kDerivedPorts, 32768);

  Variables one_host = OpenMpi();
  one_host["OMPI_COMM_WORLD_SIZE"] = "3";
  one_host["OMPI_COMM_WORLD_LOCAL_SIZE"] = "3";
  one_host["OMPI_COMM_WORLD_LOCAL_RANK"] = "2";
  ASSERT_OK_AND_ASSIGN(options, Parse(one_host));
  EXPECT_EQ(options.store_host, "127.0.0.1");

  Variables given = OpenMpi();
  given["MASTER_ADDR"] = "node0";
  EXPECT_THAT(Parse(given), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("MASTER_PORT not set, though MASTER_ADDR is")));
  given["MASTER_PORT"] = "29500";
  ASSERT_OK_AND_ASSIGN(options, Parse(given));
  EXPECT_EQ(options.store_host, "node0");
  EXPECT_EQ(options.store_port, 29500);
  EXPECT_EQ(options.store_ports, 1);

  Variables nowhere = OpenMpi();
  nowhere.erase("OMPI_MCA_orte_hnp_uri");
  EXPECT_THAT(Parse(nowhere),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("OMPI_MCA_orte_hnp_uri"), HasSubstr("-x MASTER_ADDR"))));
}

TEST(Environment, ReadsSlurm) {
  ASSERT_OK_AND_ASSIGN(CommOptions options, Parse(Slurm()));
  EXPECT_EQ(options.rank, 5);
  EXPECT_EQ(options.size, 11);
  EXPECT_EQ(options.local_rank, 1);
  EXPECT_EQ(options.local_size, 4);
  EXPECT_EQ(options.store_host, "n07");
  EXPECT_EQ(options.run_id, "slurm 12.3");
  EXPECT_EQ(options.launcher, "slurm");

  // A batch script is one process, however many tasks its steps will have.
  Variables batch = Slurm();
  batch.erase("SLURM_STEP_ID");
  ASSERT_OK_AND_ASSIGN(options, Parse(batch));
  EXPECT_EQ(options.size, 1);
}

TEST(Environment, ReadsKubernetes) {
  ASSERT_OK_AND_ASSIGN(const CommOptions options, Parse(Kubernetes()));
  EXPECT_EQ(options.rank, 3);
  EXPECT_EQ(options.size, 8);
  EXPECT_EQ(options.local_size, 1);
  EXPECT_EQ(options.store_host, "train-0.ranks");
  EXPECT_EQ(options.run_id, "kubernetes train");
}

TEST(Environment, RefusesContradictionsOfEveryLauncher) {
  const struct {
    Variables variables;
    const char* name;
    const char* value;  // "" removes the variable
    std::vector<std::string> words;
  } kCases[] = {
      {OpenMpi(), "OMPI_COMM_WORLD_LOCAL_SIZE", "", {"OMPI_COMM_WORLD_LOCAL_SIZE not set, though"}},
      {OpenMpi(), "OMPI_COMM_WORLD_RANK", "4", {"_RANK=4 is not below OMPI_COMM_WORLD_SIZE=4"}},
      {Slurm(), "SLURM_LOCALID", "", {"SLURM_LOCALID not set, though SLURM_PROCID"}},
      {Slurm(), "SLURM_LOCALID", "4", {"SLURM_LOCALID=4 is not below SLURM_STEP_TASKS_PER_NODE=4"}},
      {Slurm(), "SLURM_NODEID", "3", {"SLURM_NODEID=3 is not below SLURM_STEP_NODELIST=3"}},
      {Slurm(),
       "SLURM_STEP_NUM_TASKS",
       "12",
       {"SLURM_STEP_TASKS_PER_NODE=4(x2),3 makes 11 tasks", "SLURM_STEP_NUM_TASKS=12"}},
      {Slurm(),
       "SLURM_STEP_NODELIST",
       "n[1-4]",
       {"counts 3 nodes", "SLURM_STEP_NODELIST=n[1-4] names 4"}},
      {Slurm(), "SLURM_STEP_NODELIST", "n[1-", {"SLURM_STEP_NODELIST: \"n[1-\""}},
      {Kubernetes(),
       "PLINTH_WORLD_SIZE",
       "",
       {"PLINTH_WORLD_SIZE not set", "JOB_COMPLETION_INDEX"}},
      {Kubernetes(),
       "JOB_COMPLETION_INDEX",
       "",
       {"JOB_COMPLETION_INDEX not set, though PLINTH_WORLD_SIZE"}},
      {Kubernetes(), "PLINTH_SERVICE", "", {"PLINTH_SERVICE not set", "JOB_COMPLETION_INDEX"}},
      {Kubernetes(),
       "PLINTH_WORLD_SIZE",
       "3",
       {"JOB_COMPLETION_INDEX=3 is not below PLINTH_WORLD_SIZE=3"}},
      {Kubernetes(), "HOSTNAME", "train-4", {"HOSTNAME=train-4", "JOB_COMPLETION_INDEX=3"}},
  };
  for (const auto& c : kCases) {
    Variables variables = c.variables;
    variables[c.name] = c.value;
    for (const std::string& word : c.words) {
      EXPECT_THAT(Parse(variables), StatusIs(absl::StatusCode::kInvalidArgument,
                                             AllOf(HasSubstr(word), Not(HasSubstr("\n")))))
          << c.name << "=" << c.value;
    }
  }
}

TEST(Environment, TheInnermostLauncherCountsAndCanBeChosen) {
  Variables variables = OpenMpi();
  variables.merge(Slurm());
  variables["SLURM_STEP_NUM_TASKS"] = "2";  // one for each of mpirun's daemons
  ASSERT_OK_AND_ASSIGN(CommOptions options, Parse(variables));
  EXPECT_EQ(options.launcher, "openmpi inside slurm");
  EXPECT_EQ(options.size, 4);

  variables["PLINTH_LAUNCHER"] = "none";
  ASSERT_OK_AND_ASSIGN(options, Parse(variables));
  EXPECT_EQ(options.size, 1);
  EXPECT_EQ(ExplainOptions(options), "no launcher: rank 0 of 1");

  variables["PLINTH_LAUNCHER"] = "kubernetes";
  EXPECT_THAT(Parse(variables),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("none of JOB_COMPLETION_INDEX, PLINTH_WORLD_SIZE is set")));

  // A WORLD_SIZE left over in the shell would make four worlds of one out of mpirun -n 4.
  Variables left_over = OpenMpi();
  left_over.merge(Good());
  left_over["WORLD_SIZE"] = left_over["LOCAL_WORLD_SIZE"] = "1";
  left_over["RANK"] = left_over["LOCAL_RANK"] = "0";
  EXPECT_THAT(Parse(left_over),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("WORLD_SIZE=1 (torchrun) is less than OMPI_COMM_WORLD_SIZE=4")));
}

TEST(Environment, LaunchesMeetAtDifferentPorts) {
  std::set<int> ports;
  for (int job = 0; job < 100; ++job) {
    Variables variables = Slurm();
    variables["SLURM_JOB_ID"] = absl::StrCat(job);
    ASSERT_OK_AND_ASSIGN(const CommOptions options, Parse(variables));
    ports.insert(options.store_port);
  }
  EXPECT_GT(ports.size(), 95u);  // two of 100 among 12000 coincide now and then
}

}  // namespace
}  // namespace plinth::comm
