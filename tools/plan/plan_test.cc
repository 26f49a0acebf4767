#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/comm/collective/communicator.h"
#include "plinth/config/loader/loader.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/hardware/device/allocator.h"
#include "plinth/hardware/device/cpu/cpu_device.h"
#include "plinth/hardware/threading/threads.h"
#include "plinth/models/nn/model.h"
#include "plinth/models/zoo/create.h"
#include "plinth/tools/plan/known_models.h"
#include "plinth/tools/plan/memory.h"
#include "plinth/tools/plan/report.h"
#include "plinth/train/loop/micro_batch.h"
#include "plinth/train/loop/train_step.h"

namespace plinth::tools {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::HasSubstr;

TEST(CountTest, PublishedModels) {
  const std::pair<const char*, int64_t> kTotals[] = {{"gpt2_124m", 124'439'808},
                                                     {"gpt2_1.5b", 1'557'611'200},
                                                     {"llama2_7b", 6'738'415'616},
                                                     {"llama3_8b", 8'030'261'248},
                                                     {"llama2_70b", 68'976'648'192}};
  EXPECT_EQ(KnownModelNames().size(), std::size(kTotals));
  for (const auto& [name, total] : kTotals) {
    ASSERT_OK_AND_ASSIGN(const config::ModelConfig model, KnownModel(name));
    ASSERT_OK_AND_ASSIGN(const Plan plan, PlanModel(name, model));
    EXPECT_EQ(plan.parameters.total(), total) << name;
  }
}

TEST(CountTest, KvCacheOfGroupedHeads) {
  ASSERT_OK_AND_ASSIGN(const config::ModelConfig model, KnownModel("llama2_70b"));
  ASSERT_OK_AND_ASSIGN(const Plan plan, PlanModel("", model));
  EXPECT_EQ(plan.kv_bytes_per_token, 327'680);  // 80 layers * 2 * 8 heads * 128 * 2 bytes
}

TEST(CountTest, AnUnknownModelListsTheKnownOnes) {
  EXPECT_THAT(KnownModel("gpt5"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("llama2_7b")));
}

config::RunConfig SmallRun(config::Architecture architecture) {
  config::RunConfig config;
  config::ModelConfig& model = *config.mutable_model();
  model.set_architecture(architecture);
  model.set_vocab_size(997);
  model.set_layers(3);
  model.set_model_dim(40);
  model.set_heads(4);
  model.set_kv_heads(architecture == config::GPT2 ? 4 : 2);
  model.set_ffn_dim(104);
  model.set_max_positions(48);
  config.mutable_train()->set_sequence_length(40);
  config.mutable_train()->set_micro_batch(3);
  config.mutable_train()->mutable_adamw()->set_lr(1e-3);
  config.mutable_train()->set_steps(2);
  config::FillDefaults(config);
  return config;
}

// The trainer's own step on the CPU, two micro-batches: what its allocator saw at most.
absl::StatusOr<int64_t> MeasuredPeak(const config::RunConfig& config) {
  const std::unique_ptr<Device> device = CreateCpuDevice();
  const std::unique_ptr<Stream> stream = device->CreateStream();
  CachingAllocator allocator(device.get());
  Threads threads(1);
  KernelContext ctx{stream.get(), &threads, &allocator};
  ASSIGN_OR_RETURN(const auto comm, comm::Communicator::Create({.size = 1}));
  ASSIGN_OR_RETURN(const auto model, models::CreateModel(config.model()));
  models::Initialize(*model, /*seed=*/1, allocator, *stream);
  train::TrainStep step(config.train(), model.get(), comm.get(), &ctx, &allocator);
  std::vector<int32_t> sample(static_cast<size_t>(config.train().sequence_length() + 1));
  std::iota(sample.begin(), sample.end(), 0);
  std::vector<train::MicroBatch> batches(2);
  for (train::MicroBatch& batch : batches) {
    for (int64_t i = 0; i < config.train().micro_batch(); ++i) batch.Add(sample);
  }
  RETURN_IF_ERROR(step.Run(batches, 2 * batches[0].target_tokens(), 1).status());
  return allocator.stats().peak_bytes;
}

// The plan runs the same code, so the two may differ only by small arrays (token ids that
// another batch brings); 1 % is 4 kB here.
TEST(MemoryTest, PredictedPeakIsTheMeasuredOne) {
  for (const config::Architecture architecture : {config::GPT2, config::LLAMA}) {
    for (const bool recompute : {false, true}) {
      config::RunConfig config = SmallRun(architecture);
      config.mutable_train()->set_recompute(recompute);
      ASSERT_OK_AND_ASSIGN(const int64_t measured, MeasuredPeak(config));
      ASSERT_OK_AND_ASSIGN(const TrainMemory plan, PlanTraining(config));
      EXPECT_NEAR(static_cast<double>(plan.peak), static_cast<double>(measured),
                  0.01 * static_cast<double>(measured))
          << config.ShortDebugString();
      EXPECT_LE(plan.weights + plan.gradients + plan.moments + plan.activations, plan.peak);
    }
  }
}

TEST(MemoryTest, EachPartIsWhatItsSizesSay) {
  config::RunConfig config = SmallRun(config::LLAMA);
  ASSERT_OK_AND_ASSIGN(const TrainMemory plan, PlanTraining(config));
  ASSERT_OK_AND_ASSIGN(const Plan count, PlanModel("", config.model()));
  const int64_t bytes = 4 * count.parameters.total();
  EXPECT_GE(plan.weights, bytes);
  EXPECT_GE(plan.gradients, bytes);
  EXPECT_LE(plan.gradients, CachingAllocator::BlockBytes(bytes + 64 * 100));
  EXPECT_EQ(plan.moments, 2 * plan.gradients);
  EXPECT_EQ(plan.logits, CachingAllocator::BlockBytes(4 * 997 * 120));
  config.mutable_train()->set_recompute(true);
  ASSERT_OK_AND_ASSIGN(const TrainMemory less, PlanTraining(config));
  EXPECT_LT(less.activations, plan.activations / 3);
  config.mutable_train()->set_recompute(false);
  config.mutable_train()->set_micro_batch(30);
  ASSERT_OK_AND_ASSIGN(const TrainMemory more, PlanTraining(config));
  EXPECT_NEAR(static_cast<double>(more.activations) / static_cast<double>(plan.activations), 10,
              1.5);
}

TEST(MemoryTest, ServingCountsCacheAndPackedWeights) {
  config::RunConfig config = SmallRun(config::LLAMA);
  config.mutable_serve()->set_kv_tokens(1000);
  ASSERT_OK_AND_ASSIGN(const ServeMemory f32, PlanServing(config));
  // 3 layers, keys and values, 1008 tokens in whole pages, 2 heads of 10.
  EXPECT_EQ(f32.cache, 6 * CachingAllocator::BlockBytes(1008 * 20 * 4));
  ASSERT_OK_AND_ASSIGN(const Plan count, PlanModel("", config.model()));
  // Every matrix but the token embedding; two gains of 40 in a block are no matrix.
  EXPECT_GE(f32.packed, 4 * (count.parameters.layers - 3 * 2 * 40 + count.parameters.head));
  EXPECT_LE(f32.packed, f32.weights);
  EXPECT_GT(f32.peak, f32.weights + f32.packed + f32.cache);
  config.mutable_serve()->set_weights(config::WEIGHT_BF16);
  ASSERT_OK_AND_ASSIGN(const ServeMemory bf16, PlanServing(config));
  EXPECT_NEAR(static_cast<double>(bf16.packed) / static_cast<double>(f32.packed), 0.5, 0.1);
}

TEST(MemoryTest, AModelLargerThanAnyMemoryIsPlanned) {
  config::RunConfig config;
  ASSERT_OK_AND_ASSIGN(*config.mutable_model(), KnownModel("llama2_70b"));
  config.mutable_train()->set_sequence_length(4096);
  config.mutable_train()->set_micro_batch(1);
  config::FillDefaults(config);
  ASSERT_OK_AND_ASSIGN(const Plan plan, PlanRun(config));
  EXPECT_GT(plan.train->peak, 16 * plan.parameters.total());
  EXPECT_THAT(ToTable(plan), HasSubstr("68,976,648,192"));
  EXPECT_THAT(ToJson(plan), HasSubstr("\"parameters\":68976648192,"));
}

struct Output {
  int exit_code;
  std::string out, err;
};

Output RunPlan(const std::string& arguments) {
  const std::string dir = ::testing::TempDir();
  const int status = std::system(
      ("./tools/plan/plan " + arguments + " >" + dir + "/out 2>" + dir + "/err").c_str());
  const auto text = [](const std::string& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  return {WEXITSTATUS(status), text(dir + "/out"), text(dir + "/err")};
}

TEST(ProgramTest, PlansEveryPreset) {
  for (const std::string preset : {"tiny_cpu", "gpt2_124m", "llama_shape"}) {
    const Output run = RunPlan("--json --config=config/presets/" + preset + ".textproto");
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("\"train_rank_bytes\":{"));
  }
}

TEST(ProgramTest, BadInputIsOneLine) {
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "give either --config=FILE or --count=MODEL"},
           {"--count=x --config=y", "give either"},
           {"--count=gpt9", "no model \"gpt9\"; known: gpt2_124m"},
           {"--count=llama2_7b --set model.layers=3", "--set changes a --config"},
           {"--config=/nonexistent", "cannot read config file"},
           {"--config=config/presets/tiny_cpu.textproto --set model.layers=0", "model.layers"},
           {"--count=gpt2_124m extra", "unexpected argument \"extra\""}}) {
    const Output run = RunPlan(arguments);
    EXPECT_EQ(run.exit_code, 1) << arguments;
    EXPECT_THAT(run.err, HasSubstr(message));
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  }
}

}  // namespace
}  // namespace plinth::tools
