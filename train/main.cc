// train: trains a language model from a config; one process is one rank.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "plinth/cluster/job/job.h"
#include "plinth/comm/comm.h"
#include "plinth/config/loader/command_line.h"
#include "plinth/config/loader/loader.h"
#include "plinth/hardware/base/log.h"
#include "plinth/hardware/base/program.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/base/stop_signal.h"
#include "plinth/train/loop/trainer.h"

ABSL_FLAG(bool, json, false, "print the result as one JSON object");

namespace plinth::train {
namespace {

constexpr char kUsage[] =
    "trains a language model.\n\n"
    "  train --config=FILE.textproto [--set path=value ...] [--json]\n\n"
    "Goes on from the newest complete checkpoint in train.run_dir, if there is one. Metrics are\n"
    "in <run_dir>/metrics.jsonl and <run_dir>/tensorboard. Ranks find each other through\n"
    "torchrun's variables (cluster/launch sets them); without them there is one rank.\n"
    "SIGTERM, SIGHUP and Ctrl-C finish the step, save and exit with 75; the same command goes on.\n"
    "While ranks still wait for each other they exit at once, also with 75.\n"
    "Exit codes: 0 all steps done, 75 stopped on request and saved, 1 error.";

// Ours, which marks the lines of each rank and tells how the group ended.
bool UnderLauncher() { return std::getenv(cluster::kLinesMarked) != nullptr; }

comm::TransportKind TransportOf(config::Transport transport) {
  switch (transport) {
    case config::SHM:
      return comm::TransportKind::kShm;
    case config::TCP:
      return comm::TransportKind::kTcp;
    default:
      return comm::TransportKind::kAuto;
  }
}

// What the launcher says of this process, with what the config says about the group.
absl::StatusOr<comm::CommOptions> CommOptionsFor(const config::CommConfig& config) {
  ASSIGN_OR_RETURN(comm::CommOptions options, comm::OptionsFromEnvironment());
  if (config.transport() != config::TRANSPORT_AUTO) {
    options.transport = TransportOf(config.transport());
  }
  if (config.timeout_seconds() > 0) options.timeout = absl::Seconds(config.timeout_seconds());
  return options;
}

// Waits for the other ranks. A stop that is asked for meanwhile ends the process at once with the
// code for it: no step was done, so nothing needs saving, and a rank that waits for one that
// failed to start must not hold up the launcher.
absl::StatusOr<std::unique_ptr<comm::Communicator>> FormGroup(const comm::CommOptions& options,
                                                              StopSignal& signal) {
  auto forming =
      std::async(std::launch::async, [&options] { return comm::Communicator::Create(options); });
  while (forming.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) {
    if (signal.received() == 0) continue;
    if (!UnderLauncher()) {
      std::fprintf(stderr, "train: stopped while waiting for the other ranks\n");
    }
    // Without destructors: the thread that waits cannot be interrupted.
    std::_Exit(cluster::kExitInterrupted);
  }
  return forming.get();
}

void PrintResult(const Trainer& trainer, const std::string& run_dir) {
  const auto& record = trainer.last_record();
  if (absl::GetFlag(FLAGS_json)) {
    std::puts(record ? ToJson(*record, absl::ToUnixSeconds(absl::Now())).c_str()
                     : absl::StrCat("{\"step\":", trainer.steps_done(), "}").c_str());
    return;
  }
  std::string line = absl::StrCat(run_dir, ": step ", trainer.steps_done());
  if (record) absl::StrAppendFormat(&line, ", loss %.4f nats/token", record->loss);
  if (record && record->eval) {
    absl::StrAppendFormat(&line, ", held-out %.4f nats/token", record->eval->loss);
    if (record->eval->bits_per_byte > 0) {
      absl::StrAppendFormat(&line, ", %.4f bits/byte", record->eval->bits_per_byte);
    }
  }
  std::puts(line.c_str());
}

absl::StatusOr<TrainEnd> Train(const config::ConfigFlags& flags) {
  if (flags.config.empty()) return absl::InvalidArgumentError("--config=FILE is required");
  ASSIGN_OR_RETURN(const config::RunConfig config,
                   config::LoadRunConfig(flags.config, flags.settings));
  RETURN_IF_ERROR(config::CheckValid(config, config::Purpose::kTrain));
  ASSIGN_OR_RETURN(const comm::CommOptions group, CommOptionsFor(config.comm()));
  if (group.size > 1 && !UnderLauncher()) SetLogPrefix(absl::StrCat("rank ", group.rank));
  StopSignal signal;  // before other threads, which inherit what it sets
  ASSIGN_OR_RETURN(const std::unique_ptr<comm::Communicator> comm, FormGroup(group, signal));
  const TrainerOptions options = {.config = config,
                                  .ranks_on_host = group.local_size,
                                  .stop = [&signal] { return signal.received() != 0; },
                                  .measure_peak = config.hardware().device() != config::CUDA,
                                  .terminal = ::isatty(STDERR_FILENO) != 0};
  ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, Trainer::Create(options, comm.get()));
  ASSIGN_OR_RETURN(const TrainEnd end, trainer->Run());
  if (group.rank == 0) PrintResult(*trainer, config.train().run_dir());
  return end;
}

int Main(int argc, char** argv) {
  SetProgramHelp(kUsage);
  const auto flags = config::TakeConfigFlags(argc, argv);
  ParseFlagsOnly("train", argc, argv);
  const absl::StatusOr<TrainEnd> end = flags.ok() ? Train(*flags) : flags.status();
  // What another rank found it says itself, and the launcher shows what each of them says.
  if (absl::IsAborted(end.status()) && UnderLauncher()) return EXIT_FAILURE;
  if (!end.ok()) return ReportError("train", end.status());
  return *end == TrainEnd::kStopped ? cluster::kExitInterrupted : EXIT_SUCCESS;
}

}  // namespace
}  // namespace plinth::train

int main(int argc, char** argv) { return plinth::train::Main(argc, argv); }
