#include "plinth/train/loop/trainer.h"

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/comm/comm.h"
#include "plinth/comm/testing/ranks.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/storage/io/directory.h"
#include "plinth/storage/io/fault_injection.h"
#include "plinth/train/testing/tiny_run.h"

namespace plinth::train {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

std::string Directory(const std::string& name) { return ::testing::TempDir() + "/" + name; }

struct Outcome {
  absl::Status status;
  TrainEnd end = TrainEnd::kStopped;
  int64_t steps = 0;
  StepRecord record;
};

Outcome RunOn(comm::Communicator& comm, const TrainerOptions& options) {
  auto trainer = Trainer::Create(options, &comm);
  if (!trainer.ok()) return {.status = trainer.status()};
  const auto end = (*trainer)->Run();
  Outcome outcome = {.status = end.status(), .steps = (*trainer)->steps_done()};
  if (end.ok()) outcome.end = *end;
  outcome.record = (*trainer)->last_record().value_or(StepRecord());
  return outcome;
}

Outcome RunAlone(const TrainerOptions& options) {
  auto comm = comm::Communicator::Create(comm::CommOptions());
  CHECK_OK(comm);
  return RunOn(**comm, options);
}

std::vector<Outcome> RunRanks(int ranks, const TrainerOptions& options) {
  std::vector<Outcome> outcomes(ranks);
  comm::testing::RunThreads(ranks, absl::Seconds(20), [&](comm::Communicator& comm) {
    outcomes[comm.rank()] = RunOn(comm, options);
    return std::string();
  });
  return outcomes;
}

// Stops after `steps` calls.
std::function<bool()> StopAfter(int64_t steps) {
  return [left = steps]() mutable { return left-- == 0; };
}

class TrainerTest : public ::testing::TestWithParam<config::DeviceType> {
 protected:
  config::RunConfig MakeRun(const std::string& name) {
    config::RunConfig config = testing::MakeTinyRun(Directory(name));
    config.mutable_hardware()->set_device(GetParam());
    return config;
  }
};

TEST_P(TrainerTest, LearnsAndReportsHeldOutBits) {
  const config::RunConfig config = MakeRun("learns");
  const Outcome outcome = RunAlone({.config = config});
  ASSERT_OK(outcome.status);
  EXPECT_EQ(outcome.end, TrainEnd::kFinished);
  EXPECT_LT(outcome.record.loss, 0.8 * std::log(11.0)) << "below the loss of a uniform guess";
  ASSERT_TRUE(outcome.record.eval.has_value());
  // The tiny datasets count three bytes a token.
  EXPECT_NEAR(outcome.record.eval->bits_per_byte, outcome.record.eval->loss / std::log(2.0) / 3,
              1e-12);
  EXPECT_EQ(testing::NewestStep(config.train().run_dir()), 40);
}

TEST_P(TrainerTest, AnInterruptedRunEqualsAStraightOne) {
  const config::RunConfig straight = MakeRun("straight");
  ASSERT_OK(RunAlone({.config = straight}).status);
  const config::RunConfig broken = MakeRun("broken");
  const Outcome first = RunAlone({.config = broken, .stop = StopAfter(20)});
  ASSERT_OK(first.status);
  EXPECT_EQ(first.end, TrainEnd::kStopped);
  EXPECT_EQ(testing::NewestStep(broken.train().run_dir()), 20);
  ASSERT_OK(RunAlone({.config = broken}).status);
  const auto tensors = testing::NewestTensors(straight.train().run_dir());
  EXPECT_FALSE(tensors.empty());
  EXPECT_TRUE(testing::NewestTensors(broken.train().run_dir()) == tensors) << "bit for bit";
}

TEST_P(TrainerTest, RanksFollowOneRankAndStopTogether) {
  const config::RunConfig alone = MakeRun("alone");
  const Outcome one = RunAlone({.config = alone});
  ASSERT_OK(one.status);
  const config::RunConfig shared = MakeRun("shared");
  std::vector<Outcome> outcomes(2);
  comm::testing::RunThreads(2, absl::Seconds(20), [&](comm::Communicator& comm) {
    // Only rank 1 is told to stop.
    TrainerOptions options = {.config = shared};
    if (comm.rank() == 1) options.stop = StopAfter(7);
    outcomes[comm.rank()] = RunOn(comm, options);
    return std::string();
  });
  for (const Outcome& outcome : outcomes) {
    ASSERT_OK(outcome.status);
    EXPECT_EQ(outcome.end, TrainEnd::kStopped);
    EXPECT_EQ(outcome.steps, 7);
  }
  for (const Outcome& outcome : RunRanks(2, {.config = shared})) {
    ASSERT_OK(outcome.status);
    EXPECT_EQ(outcome.end, TrainEnd::kFinished);
    // Gradients differ by roundings, which 40 steps of AdamW keep small against the loss.
    EXPECT_NEAR(outcome.record.loss, one.record.loss, 1e-3);
    EXPECT_NEAR(outcome.record.eval->loss, one.record.eval->loss, 1e-3);
  }
}

TEST_P(TrainerTest, AFullDiskLosesNeitherTheRunNorOldCheckpoints) {
  config::RunConfig config = MakeRun("full_disk");
  config.mutable_train()->set_checkpoint_every(5);
  ASSERT_OK(RunAlone({.config = config, .stop = StopAfter(5)}).status);
  storage::FaultySyscalls full;
  full.capacity = 1000;
  const Outcome outcome = RunAlone({.config = config, .syscalls = &full});
  EXPECT_EQ(outcome.steps, 40) << "training went on";
  EXPECT_THAT(outcome.status, StatusIs(absl::StatusCode::kResourceExhausted,
                                       AllOf(HasSubstr("saving step 40"), HasSubstr("disk full"))));
  EXPECT_EQ(testing::NewestStep(config.train().run_dir()), 5);
  ASSERT_OK(RunAlone({.config = config}).status);

  const config::RunConfig straight = MakeRun("enough_disk");
  ASSERT_OK(RunAlone({.config = straight}).status);
  EXPECT_TRUE(testing::NewestTensors(config.train().run_dir()) ==
              testing::NewestTensors(straight.train().run_dir()));
}

INSTANTIATE_TEST_SUITE_P(Devices, TrainerTest, ::testing::Values(config::CPU, config::SIM),
                         [](const auto& info) { return config::DeviceType_Name(info.param); });

TEST(TrainerErrorsTest, RanksThatDoNotDivideNameTheNearest) {
  EXPECT_OK(CheckRanks(48, 2, 8));
  EXPECT_THAT(CheckRanks(48, 2, 5),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("that do: 4 or 6")));
  EXPECT_THAT(CheckRanks(8, 2, 9),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("that do: 4")));
  EXPECT_THAT(CheckRanks(7, 2, 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("multiple of")));
}

TEST(TrainerErrorsTest, ARankThatCannotStartStopsAll) {
  const config::RunConfig config = testing::MakeTinyRun(Directory("one_fails"));
  std::vector<Outcome> outcomes(2);
  comm::testing::RunThreads(2, absl::Seconds(20), [&](comm::Communicator& comm) {
    TrainerOptions options = {.config = config};
    if (comm.rank() == 1) options.config.mutable_data()->set_train("/no/such/data");
    outcomes[comm.rank()] = RunOn(comm, options);
    return std::string();
  });
  EXPECT_THAT(outcomes[0].status, StatusIs(absl::StatusCode::kAborted, HasSubstr("rank 1")));
  EXPECT_THAT(outcomes[1].status, StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such")));
}

TEST(TrainerErrorsTest, AnotherModelSeedOrTokenizerIsRefused) {
  config::RunConfig config = testing::MakeTinyRun(Directory("refused"));
  config.mutable_train()->set_steps(2);
  ASSERT_OK(RunAlone({.config = config}).status);
  config::RunConfig model = config;
  model.mutable_model()->set_layers(3);
  EXPECT_THAT(RunAlone({.config = model}).status,
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("layers: 3")));
  config::RunConfig seed = config;
  seed.mutable_train()->set_seed(6);
  EXPECT_THAT(RunAlone({.config = seed}).status,
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("train.seed 5")));
  ASSERT_OK(storage::WriteFileAtomically(config.data().tokenizer(), "another"));
  EXPECT_THAT(RunAlone({.config = config}).status,
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("tokenizer")));
}

TEST(TrainerErrorsTest, DamagedCheckpointsAreNotReplacedByAFreshStart) {
  config::RunConfig config = testing::MakeTinyRun(Directory("damaged"));
  config.mutable_train()->set_steps(2);
  ASSERT_OK(RunAlone({.config = config}).status);
  ASSERT_OK(storage::WriteFileAtomically(
      config.train().run_dir() + "/checkpoints/step-00000002/manifest.pb", "rubbish"));
  EXPECT_THAT(RunAlone({.config = config}).status,
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("remove the damaged")));
}

TEST(TrainerErrorsTest, ARunThatCannotSaveDoesNotBegin) {
  config::RunConfig config = testing::MakeTinyRun(Directory("cannot_save"));
  config.mutable_train()->set_steps(2);
  ASSERT_OK(storage::MakeDirectories(config.train().run_dir()));
  storage::FaultySyscalls forbidden;
  forbidden.fail_at = 0;
  forbidden.error = EACCES;
  const Outcome outcome = RunAlone({.config = config, .syscalls = &forbidden});
  EXPECT_THAT(outcome.status, StatusIs(absl::StatusCode::kPermissionDenied,
                                       HasSubstr("/checkpoints: create directory")));
  ASSERT_OK(storage::WriteFileAtomically(config.train().run_dir() + "/checkpoints", "a file"));
  const Outcome in_the_way = RunAlone({.config = config});
  EXPECT_FALSE(in_the_way.status.ok());
  EXPECT_THAT(std::string(in_the_way.status.message()), HasSubstr("/run/checkpoints"));
  ASSERT_OK(storage::RemoveTree(config.train().run_dir()));
  EXPECT_OK(RunAlone({.config = config}).status);
}

TEST(TrainerErrorsTest, ASecondTrainingInARunDirectoryIsRefused) {
  config::RunConfig config = testing::MakeTinyRun(Directory("twice"));
  config.mutable_train()->set_steps(2);
  comm::testing::RunThreads(1, absl::Seconds(20), [&](comm::Communicator& comm) {
    const auto first = Trainer::Create({.config = config}, &comm);
    EXPECT_OK(first.status());
    EXPECT_THAT(RunAlone({.config = config}).status,
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another process")));
    return std::string();
  });
  EXPECT_OK(RunAlone({.config = config}).status);
}

}  // namespace
}  // namespace plinth::train
