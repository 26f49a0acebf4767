#include "plinth/train/loop/trainer.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/config/loader/loader.h"
#include "plinth/hardware/base/log.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/perf/compute.h"
#include "plinth/hardware/setup/setup.h"
#include "plinth/models/cost/cost.h"
#include "plinth/models/zoo/create.h"
#include "plinth/models/zoo/resolve.h"
#include "plinth/storage/checkpoint/catalog.h"
#include "plinth/storage/checkpoint/layout.h"
#include "plinth/storage/io/directory.h"
#include "plinth/train/data_parallel/agree.h"
#include "plinth/train/loop/checkpoint.h"
#include "plinth/train/loop/evaluate.h"

namespace plinth::train {
namespace {

// The newest complete checkpoint's step; -1 when the run has none at all. A run whose
// checkpoints are all damaged is an error: starting anew would end up replacing them.
absl::StatusOr<int64_t> LatestStep(const std::string& run_dir) {
  const auto found = storage::FindLatest(run_dir, /*verify_checksums=*/true);
  if (absl::IsNotFound(found.status())) return -1;
  RETURN_IF_ERROR(found.status()) << "no good checkpoint; remove the damaged ones to start anew";
  for (const std::string& skipped : found->skipped) {
    LOG(WARNING) << "passing over checkpoint " << skipped;
  }
  return found->step;
}

// FLOP/s that `threads` CPUs of this host could do; 0, with a warning, when that cannot be
// measured. Takes about a tenth of a second in which nothing else should compute here.
double MeasurePeak(int threads) {
  const auto peak = perf::MeasureFmaPeak({.threads = threads, .repetitions = 3});
  if (peak.ok()) return peak->best_gflops * 1e9;
  LOG(WARNING) << "no arithmetic peak to compare with: " << std::string(peak.status().message());
  return 0;
}

}  // namespace

absl::Status CheckRanks(int64_t global_batch, int64_t micro_batch, int64_t ranks) {
  const auto legal = [&](int64_t n) { return global_batch % (n * micro_batch) == 0; };
  if (legal(ranks)) return absl::OkStatus();
  std::string nearest;
  for (int64_t n = ranks - 1; n >= 1; --n) {
    if (legal(n)) {
      nearest = absl::StrCat(n);
      break;
    }
  }
  for (int64_t n = ranks + 1; n * micro_batch <= global_batch; ++n) {
    if (legal(n)) {
      absl::StrAppend(&nearest, nearest.empty() ? "" : " or ", n);
      break;
    }
  }
  const std::string advice = nearest.empty()
                                 ? "make train.global_batch a multiple of train.micro_batch"
                                 : absl::StrCat("the nearest that do: ", nearest);
  return absl::InvalidArgumentError(
      absl::StrCat(ranks, " ranks with train.micro_batch = ", micro_batch,
                   " do not divide train.global_batch = ", global_batch, "; ", advice));
}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(const TrainerOptions& options,
                                                         comm::Communicator* comm) {
  const config::TrainConfig& config = options.config.train();
  RETURN_IF_ERROR(CheckRanks(config.global_batch(), config.micro_batch(), comm->size()));
  ASSIGN_OR_RETURN(std::unique_ptr<Device> device, OpenDevice(options.config.hardware()));
  ASSIGN_OR_RETURN(const int threads,
                   KernelThreads(options.config.hardware(), options.ranks_on_host));
  std::unique_ptr<Trainer> trainer(new Trainer(options, comm, std::move(device), threads));
  RETURN_IF_ERROR(AllOk(*comm, trainer->Open(), "opening the run"));
  RETURN_IF_ERROR(trainer->Resume());
  RETURN_IF_ERROR(CheckEqualWeights(*comm, trainer->model_->parameters(), *trainer->stream_));
  if (options.measure_peak && comm->rank() == 0) {
    // The others wait for rank 0 in their next collective, so the host is quiet. Hosts are
    // taken to be equal.
    const int ranks = options.ranks_on_host;
    trainer->peak_flops_ = MeasurePeak(ranks * threads) / ranks * comm->size();
  }
  return trainer;
}

Trainer::Trainer(const TrainerOptions& options, comm::Communicator* comm,
                 std::unique_ptr<Device> device, int threads)
    : options_(options),
      comm_(comm),
      device_(std::move(device)),
      allocator_(device_.get(), options.config.hardware().memory_limit()),
      threads_(threads),
      stream_(device_->CreateStream()),
      ctx_{.stream = stream_.get(), .threads = &threads_, .scratch = &allocator_} {}

absl::Status Trainer::Open() {
  ASSIGN_OR_RETURN(data_, OpenRunData(options_.config));
  ASSIGN_OR_RETURN(const models::ModelSpec spec, models::ResolveModel(options_.config.model()));
  flops_per_token_ = models::TrainFlopsPerToken(spec, config().sequence_length());
  ASSIGN_OR_RETURN(model_, models::CreateModel(options_.config.model()));
  RETURN_IF_ERROR(storage::MakeDirectories(config().run_dir(), *options_.syscalls));
  if (leader()) {
    ASSIGN_OR_RETURN(lock_, storage::DirectoryLock::Acquire(config().run_dir()));
    RETURN_IF_ERROR(storage::CheckCanSave(config().run_dir(), *options_.syscalls));
  }
  return absl::OkStatus();
}

absl::Status Trainer::Resume() {
  models::Initialize(*model_, config().seed(), allocator_, *stream_);
  step_ = std::make_unique<TrainStep>(config(), model_.get(), comm_, &ctx_, &allocator_);
  // One rank decides, so that ranks that see a shared directory at different moments agree.
  absl::StatusOr<int64_t> found = leader() ? LatestStep(config().run_dir()) : -1;
  RETURN_IF_ERROR(AllOk(*comm_, found.status(), "looking for a checkpoint"));
  int64_t step = *found;
  RETURN_IF_ERROR(comm_->Broadcast(comm::BufferOf(std::span<int64_t>(&step, 1)), 0));
  if (step >= 0) RETURN_IF_ERROR(AllOk(*comm_, Restore(step), "restoring a checkpoint"));
  if (!leader()) return AllOk(*comm_, absl::OkStatus(), "opening the metrics");
  auto reporter = Reporter::Create(
      {.run_dir = config().run_dir(), .resumed_step = steps_done_, .terminal = options_.terminal});
  if (reporter.ok()) reporter_ = *std::move(reporter);
  return AllOk(*comm_, reporter.status(), "opening the metrics");
}

absl::Status Trainer::Restore(int64_t step) {
  const std::string dir =
      absl::StrCat(storage::CheckpointsDir(config().run_dir()), "/", storage::StepName(step));
  ASSIGN_OR_RETURN(const std::unique_ptr<storage::CheckpointReader> reader,
                   storage::CheckpointReader::Open(dir, {.verify_reads = true}));
  const storage::TrainerState& state = reader->state();
  ASSIGN_OR_RETURN(const config::RunConfig made_with,
                   config::ParseRunConfig(state.config_text, dir, {}));
  const auto refuse = [&dir](const std::string& what, const auto& theirs, const auto& ours) {
    return absl::FailedPreconditionError(absl::StrCat(dir, " was made with ", what, " ", theirs,
                                                      ", the config has ", ours,
                                                      "; use another train.run_dir"));
  };
  if (made_with.model().SerializeAsString() != options_.config.model().SerializeAsString()) {
    return refuse("model {", made_with.model().ShortDebugString() + "}",
                  "{" + options_.config.model().ShortDebugString() + "}");
  }
  if (state.rng_seed != config().seed()) {
    return refuse("train.seed", state.rng_seed, config().seed());
  }
  ASSIGN_OR_RETURN(position_, data_.train->sampler().PositionOf(state.cursor), _ << dir);
  RETURN_IF_ERROR(RestoreCheckpoint(*reader, *step_, *stream_));
  steps_done_ = steps_saved_ = state.step;
  if (leader()) LOG(INFO) << "going on from " << dir;
  return absl::OkStatus();
}

absl::StatusOr<TrainEnd> Trainer::Run() {
  while (steps_done_ < config().steps()) {
    ASSIGN_OR_RETURN(const bool stop, AnyRankStops());
    if (stop) {
      RETURN_IF_ERROR(AllOk(*comm_, Save(), "last checkpoint"));
      return TrainEnd::kStopped;
    }
    // Evaluates and writes the step's record before its checkpoint. A kill in between repeats the
    // step and replaces the record; the other order could leave a checkpoint whose step has no
    // record, or a finished run without its last evaluation, and nothing would make up for it.
    RETURN_IF_ERROR(RunStep());
    const bool last = steps_done_ == config().steps();
    if (!last && Due(config().checkpoint_every())) {
      const absl::Status saved = Save();
      if (!saved.ok()) {
        LOG(ERROR) << "step " << steps_done_
                   << ": no checkpoint, training goes on: " << std::string(saved.message());
      }
    }
  }
  RETURN_IF_ERROR(AllOk(*comm_, Save(), "last checkpoint"));
  return TrainEnd::kFinished;
}

absl::StatusOr<bool> Trainer::AnyRankStops() {
  int32_t stop = options_.stop != nullptr && options_.stop() ? 1 : 0;
  RETURN_IF_ERROR(
      comm_->AllReduce(comm::BufferOf(std::span<int32_t>(&stop, 1)), comm::ReduceOp::kMax));
  return stop != 0;
}

absl::Status Trainer::RunStep() {
  const absl::Time start = absl::Now();
  const int64_t batch = config().global_batch();
  const storage::SampleRange mine =
      storage::RankShare(position_, batch, comm_->rank(), comm_->size());
  auto batches = data_.train->Read(mine, config().micro_batch());
  RETURN_IF_ERROR(AllOk(*comm_, batches.status(), "reading training data"));
  const int64_t tokens = batch * config().sequence_length();
  ASSIGN_OR_RETURN(const StepResult result, step_->Run(*batches, tokens, steps_done_ + 1));
  ++steps_done_;
  position_ += batch;

  const absl::Duration took = absl::Now() - start;
  step_time_ = step_time_ == absl::ZeroDuration() ? took : 0.9 * step_time_ + 0.1 * took;
  const double per_second = static_cast<double>(tokens) / absl::ToDoubleSeconds(step_time_);
  StepRecord record = {.step = steps_done_,
                       .steps = config().steps(),
                       .loss = result.loss,
                       .gradient_norm = result.gradient_norm,
                       .learning_rate = result.learning_rate,
                       .tokens = position_ * config().sequence_length(),
                       .tokens_per_second = per_second,
                       .flops_per_second = per_second * flops_per_token_};
  if (peak_flops_ > 0) record.mfu = record.flops_per_second / peak_flops_;
  record.seconds_left =
      absl::ToDoubleSeconds(step_time_) * static_cast<double>(config().steps() - steps_done_);
  const bool last = steps_done_ == config().steps();
  if (data_.eval != nullptr && (last || Due(config().eval_every()))) {
    ASSIGN_OR_RETURN(record.eval, Evaluate());
  }
  if (reporter_ != nullptr) reporter_->Report(record);
  last_record_ = record;
  return absl::OkStatus();
}

absl::StatusOr<EvalRecord> Trainer::Evaluate() {
  const storage::BatchSampler& sampler = data_.eval->sampler();
  const int64_t wanted = config().eval_samples();
  const int64_t samples = wanted > 0 ? std::min(wanted, sampler.windows()) : sampler.windows();
  const storage::SampleRange mine = storage::RankShare(0, samples, comm_->rank(), comm_->size());
  double loss = 0;
  absl::Status status;
  for (int64_t done = 0; status.ok() && done < mine.count; done += config().micro_batch()) {
    const int64_t count = std::min(config().micro_batch(), mine.count - done);
    const auto batches = data_.eval->Read({mine.first + done, count}, count);
    status = batches.status();
    if (!status.ok()) break;
    const auto sum = EvaluateLoss(*model_, batches->front(), ctx_);
    status = sum.status();
    if (sum.ok()) loss += *sum;
  }
  RETURN_IF_ERROR(AllOk(*comm_, status, "evaluation"));
  RETURN_IF_ERROR(comm_->AllReduce(comm::BufferOf(std::span<double>(&loss, 1))));
  const storage::TokenDataset& text = data_.eval->dataset();
  EvalRecord record = {.loss = loss / static_cast<double>(samples * sampler.sequence_length())};
  if (text.source_bytes() > 0) {
    const double tokens_per_byte =
        static_cast<double>(text.size()) / static_cast<double>(text.source_bytes());
    record.bits_per_byte = record.loss / std::log(2.0) * tokens_per_byte;
  }
  return record;
}

absl::Status Trainer::Save() {
  // Rank 0 writes what all hold; its failure reaches the others through AllOk.
  if (!leader() || steps_saved_ == steps_done_) return absl::OkStatus();
  const storage::TrainerState state = {
      .step = steps_done_,
      .config_text = config::ToText(options_.config),
      .rng_seed = config().seed(),
      .cursor = data_.train->sampler().CursorAt(position_),
      .counters = {{"tokens", position_ * config().sequence_length()}}};
  RETURN_IF_ERROR(SaveCheckpoint(config().run_dir(), state, data_.tokenizer_json, *step_, *stream_,
                                 *options_.syscalls))
      << "saving step " << steps_done_;
  steps_saved_ = steps_done_;
  const int keep = static_cast<int>(std::max<int64_t>(1, config().keep_checkpoints()));
  const absl::Status removed = storage::KeepLast(config().run_dir(), keep, *options_.syscalls);
  if (!removed.ok()) {
    LOG(WARNING) << "old checkpoints stay: " << std::string(removed.message());
  }
  return absl::OkStatus();
}

}  // namespace plinth::train
