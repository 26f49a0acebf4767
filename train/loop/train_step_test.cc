#include "plinth/train/loop/train_step.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/comm/comm.h"
#include "plinth/comm/testing/ranks.h"
#include "plinth/config/loader/loader.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/hardware/device/registry.h"
#include "plinth/hardware/testing/device_fixture.h"
#include "plinth/train/testing/small_model.h"

namespace plinth::train {
namespace {

using ::plinth::testing::StatusIs;

// A rank with a model of its own.
struct Rank {
  Rank(DeviceKind kind, comm::Communicator* comm, const config::TrainConfig& config)
      : device(*CreateDevice(kind)),
        allocator(device.get()),
        threads(1),
        stream(device->CreateStream()),
        ctx{stream.get(), &threads, &allocator},
        model(testing::SmallModel(config::LLAMA, /*tied=*/true, allocator, *stream)),
        step(config, model.get(), comm, &ctx, &allocator) {}

  std::vector<float> Read(const TensorView& view) {
    std::vector<float> values(view.elements());
    stream->CopyOut(values.data(), view.data, view.bytes());
    CHECK_OK(stream->Synchronize());
    return values;
  }
  std::vector<float> Gradients() { return Read(step.gradients().flat().view()); }
  std::vector<std::vector<float>> Weights() {
    std::vector<std::vector<float>> all;
    for (const models::Parameter* p : model->parameters()) all.push_back(Read(p->value().view()));
    return all;
  }

  std::unique_ptr<Device> device;
  CachingAllocator allocator;
  Threads threads;
  std::unique_ptr<Stream> stream;
  KernelContext ctx;
  std::unique_ptr<models::LanguageModel> model;
  TrainStep step;
};

config::TrainConfig Config() {
  config::TrainConfig config;
  config.set_steps(10);
  config.mutable_adamw()->set_lr(0.01);
  config::FillDefaults(*config.mutable_adamw());
  config.set_bucket_bytes(512);
  config.set_clip_norm(1);
  return config;
}

// Samples of 1, 5, 9 and 2 targets: what padding would hide and averaging would weigh wrongly.
std::vector<std::vector<int32_t>> UnevenSamples() {
  return {{3, 1}, {4, 1, 5, 9, 2, 6}, {5, 3, 5, 8, 9, 7, 9, 3, 2, 3}, {8, 4, 6}};
}
constexpr int64_t kTokens = 1 + 5 + 9 + 2;

std::vector<MicroBatch> InMicroBatches(const std::vector<std::vector<int32_t>>& samples,
                                       size_t samples_each) {
  std::vector<MicroBatch> batches;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (i % samples_each == 0) batches.emplace_back();
    batches.back().Add(samples[i]);
  }
  return batches;
}

// Bound on the difference of two gradients that add the same terms in another order: each of
// at most 17 * 11 terms is at most about one, and a sum of n terms is off by n roundings.
constexpr double kReordered = 2 * 17 * 11 * 0x1p-24;

void ExpectNear(const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], kReordered) << i;
}

std::unique_ptr<comm::Communicator> OneRank() {
  auto comm = comm::Communicator::Create(comm::CommOptions());
  CHECK_OK(comm);
  return *std::move(comm);
}

class TrainStepTest : public ::testing::TestWithParam<DeviceKind> {};

TEST_P(TrainStepTest, TokensWeighTheSameInAnyMicroBatch) {
  const auto comm = OneRank();
  Rank whole(GetParam(), comm.get(), Config());
  ASSERT_OK_AND_ASSIGN(const StepResult one,
                       whole.step.Run(InMicroBatches(UnevenSamples(), 4), kTokens, 1));
  for (const size_t samples_each : {1, 2, 3}) {
    Rank rank(GetParam(), comm.get(), Config());
    const auto batches = InMicroBatches(UnevenSamples(), samples_each);
    ASSERT_OK_AND_ASSIGN(const StepResult several, rank.step.Run(batches, kTokens, 1));
    ExpectNear(rank.Gradients(), whole.Gradients());
    EXPECT_NEAR(several.loss, one.loss, 1e-6);
    EXPECT_NEAR(several.gradient_norm, one.gradient_norm, 1e-4 * one.gradient_norm);
  }
}

TEST_P(TrainStepTest, RanksTogetherEqualOneRank) {
  const auto alone = OneRank();
  Rank whole(GetParam(), alone.get(), Config());
  ASSERT_OK_AND_ASSIGN(const StepResult one,
                       whole.step.Run(InMicroBatches(UnevenSamples(), 1), kTokens, 1));
  const std::vector<float> expected = whole.Gradients();
  for (const int64_t bucket_bytes : {1, 1000, 1 << 20}) {
    config::TrainConfig config = Config();
    config.set_bucket_bytes(bucket_bytes);
    std::vector<std::vector<float>> gradients(2);
    std::vector<std::vector<std::vector<float>>> weights(2);
    std::vector<StepResult> results(2);
    const auto reports = comm::testing::RunThreads(
        2, absl::Seconds(20), [&](comm::Communicator& comm) -> std::string {
          Rank rank(GetParam(), &comm, config);
          auto samples = UnevenSamples();
          // Rank 0 has one sample, rank 1 three.
          const size_t cut = 1;
          std::vector<std::vector<int32_t>> mine(
              comm.rank() == 0 ? samples.begin() : samples.begin() + cut,
              comm.rank() == 0 ? samples.begin() + cut : samples.end());
          const auto result = rank.step.Run(InMicroBatches(mine, 2), kTokens, 1);
          if (!result.ok()) return result.status().ToString();
          results[comm.rank()] = *result;
          gradients[comm.rank()] = rank.Gradients();
          for (int64_t step = 2; step <= 4; ++step) {
            const auto more = rank.step.Run(InMicroBatches(mine, 2), kTokens, step);
            if (!more.ok()) return more.status().ToString();
          }
          weights[comm.rank()] = rank.Weights();
          return "";
        });
    ASSERT_THAT(reports, ::testing::Each(""));
    EXPECT_EQ(gradients[0], gradients[1]) << "ranks agree bit for bit";
    EXPECT_EQ(weights[0], weights[1]) << "and stay so";
    EXPECT_EQ(results[0].gradient_norm, results[1].gradient_norm);
    EXPECT_NEAR(results[0].loss, one.loss, 1e-6);
    ExpectNear(gradients[0], expected);
  }
}

TEST_P(TrainStepTest, RecomputingTrainsTheSameBits) {
  const auto comm = OneRank();
  std::vector<std::vector<std::vector<float>>> weights;
  for (const bool recompute : {false, true}) {
    config::TrainConfig config = Config();
    config.set_recompute(recompute);
    Rank rank(GetParam(), comm.get(), config);
    for (int64_t step = 1; step <= 3; ++step) {
      ASSERT_OK(rank.step.Run(InMicroBatches(UnevenSamples(), 2), kTokens, step));
    }
    weights.push_back(rank.Weights());
  }
  EXPECT_EQ(weights[0], weights[1]);
}

TEST_P(TrainStepTest, AGradientThatIsNotFiniteChangesNothing) {
  const auto comm = OneRank();
  Rank rank(GetParam(), comm.get(), Config());
  models::Parameter& broken = *rank.model->parameters().back();
  const std::vector<float> bad(broken.value().elements(), INFINITY);
  rank.stream->CopyIn(broken.value().view().data, bad.data(), broken.value().view().bytes());
  const auto result = rank.step.Run(InMicroBatches(UnevenSamples(), 4), kTokens, 1);
  EXPECT_THAT(result, StatusIs(absl::StatusCode::kOutOfRange,
                               ::testing::HasSubstr("step 1: the gradient is not finite")));
  EXPECT_EQ(rank.Weights().back(), bad);
  for (const FlatLayout::Slot& slot : rank.step.layout().slots()) {
    EXPECT_THAT(rank.Read(rank.step.optimizer().m(slot)), ::testing::Each(0));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, TrainStepTest,
                         ::testing::ValuesIn(::plinth::testing::TestedDevices()),
                         ::plinth::testing::DeviceTestName);

}  // namespace
}  // namespace plinth::train
