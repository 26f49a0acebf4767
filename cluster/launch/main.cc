// //cluster:launch: starts the ranks of a run.
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <iostream>
#include <vector>

#include "absl/flags/flag.h"
#include "plinth/cluster/launch/local.h"
#include "plinth/config/loader/command_line.h"
#include "plinth/config/loader/loader.h"
#include "plinth/config/run.pb.h"
#include "plinth/hardware/base/program.h"
#include "plinth/hardware/base/status_macros.h"

ABSL_FLAG(std::string, on, "local", "Where the ranks run: local (processes on this host).");
ABSL_FLAG(int, ranks, 0, "Processes to start; 0 = cluster.ranks of the config, or 1.");
ABSL_FLAG(int, max_restarts, -1, "Restart budget; -1 = cluster.max_restarts of the config.");

namespace plinth::cluster {
namespace {

// Written by the signal handler, read by the launcher's loop.
std::atomic<int> stop_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void OnStopSignal(int signal) { stop_signal = signal; }

// The config with the launcher's own flags applied. An error in it is said here, once, rather
// than by every rank. What the fields mean is the program's business, except for the trainer:
// it is what this launcher is made for, and all ranks would refuse the same config.
absl::StatusOr<config::RunConfig> ReadConfig(const config::ConfigFlags& flags,
                                             const std::string& program) {
  ASSIGN_OR_RETURN(config::RunConfig config,
                   flags.config.empty() ? config::ParseRunConfig("", "--set", flags.settings)
                                        : config::LoadRunConfig(flags.config, flags.settings));
  if (const int ranks = absl::GetFlag(FLAGS_ranks); ranks != 0) {
    config.mutable_cluster()->set_ranks(ranks);
  }
  if (const int restarts = absl::GetFlag(FLAGS_max_restarts); restarts >= 0) {
    config.mutable_cluster()->set_max_restarts(restarts);
  }
  if (program.substr(program.rfind('/') + 1) == "train" && !flags.config.empty()) {
    RETURN_IF_ERROR(config::CheckValid(config, config::Purpose::kTrain));
  }
  return config;
}

absl::StatusOr<GroupResult> Launch(const config::ConfigFlags& flags,
                                   std::vector<std::string> command) {
  if (absl::GetFlag(FLAGS_on) != "local") {
    return absl::InvalidArgumentError("--on=" + absl::GetFlag(FLAGS_on) + ": expected local");
  }
  if (command.empty()) {
    return absl::InvalidArgumentError("no program to run: give it after --");
  }
  ASSIGN_OR_RETURN(const config::RunConfig config, ReadConfig(flags, command[0]));
  JobSpec job;
  job.command = std::move(command);
  for (std::string& argument : config::ToArguments(flags)) job.command.push_back(argument);
  job.ranks = config.cluster().ranks();
  job.max_restarts = config.cluster().max_restarts();
  job.grace = absl::Seconds(config.cluster().grace_seconds());

  struct sigaction action {};
  action.sa_handler = OnStopSignal;
  struct sigaction hang_up {};
  sigaction(SIGHUP, nullptr, &hang_up);
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
  // Under nohup a run outlives the terminal.
  if (hang_up.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return RunLocal(job, stop_signal);
}

int Main(int argc, char** argv) {
  SetProgramHelp(
      "Starts the ranks of a run and ends them together.\n"
      "  launch [--on=local] [--ranks=N] [--config=F] [--set P=V] -- PROGRAM [ARGUMENT...]\n"
      "--config and --set are read here first, so that an error in them is said once, and passed "
      "on to the program. Exit code: 0 when all ranks ended "
      "well, 75 when they stopped on request, else that of the rank that failed first.");
  const absl::StatusOr<config::ConfigFlags> flags = config::TakeConfigFlags(argc, argv);
  if (!flags.ok()) {
    ReportError("launch", flags.status());
    return 2;
  }
  const std::vector<char*> rest = ParseFlags(argc, argv);
  const absl::StatusOr<GroupResult> result =
      Launch(*flags, std::vector<std::string>(rest.begin() + 1, rest.end()));
  if (!result.ok()) {
    ReportError("launch", result.status());
    return 2;
  }
  if (!result->verdict.empty() && !result->explained)
    std::cerr << "launch: " << result->verdict << "\n";
  return result->exit_code;
}

}  // namespace
}  // namespace plinth::cluster

int main(int argc, char** argv) { return plinth::cluster::Main(argc, argv); }
