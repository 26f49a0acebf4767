#include "plinth/infer/load/served_model.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/infer/load/test_checkpoint.h"

namespace plinth::infer {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::HasSubstr;

config::HardwareConfig Hardware(config::DeviceType device) {
  config::HardwareConfig hardware;
  hardware.set_device(device);
  hardware.set_threads(2);
  return hardware;
}

class ServedModelTest : public ::testing::Test {
 protected:
  ServedModelTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    run_ = ::testing::TempDir() + "/served_" + info->name();
    std::filesystem::remove_all(run_);
    std::filesystem::create_directories(run_);
  }

  std::string run_;
};

struct Text {
  std::string text;
  FinishReason finish = FinishReason::kNone;
};

Text Generate(Engine& engine, GenerateRequest request) {
  Text reply;
  std::promise<void> done;
  CHECK_OK(engine.Submit(std::move(request), [&](const GenerateEvent& event) {
    reply.text += event.text;
    reply.finish = event.finish;
    if (event.finish != FinishReason::kNone) done.set_value();
  }));
  EXPECT_EQ(done.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  return reply;
}

TEST_F(ServedModelTest, ServesTheLatestCheckpointOfARunOnEveryDevice) {
  ASSERT_OK(WriteTestCheckpoint(run_, {.step = 3}));
  ASSERT_OK(WriteTestCheckpoint(run_, {.step = 12}));
  std::string texts[2];
  for (const config::DeviceType device : {config::CPU, config::SIM}) {
    ASSERT_OK_AND_ASSIGN(const auto served, ServedModel::Load(run_, Hardware(device)));
    EXPECT_EQ(served->step(), 12);
    EXPECT_EQ(served->config().name(), "tiny test");
    ASSERT_OK_AND_ASSIGN(const auto engine, served->NewEngine({}));
    EXPECT_EQ(engine->max_tokens(), 64);
    ASSERT_OK_AND_ASSIGN(auto prompt, served->EncodePrompt("the cat"));
    const Text reply = Generate(*engine, {.prompt = std::move(prompt), .max_tokens = 30});
    EXPECT_FALSE(reply.text.empty());
    texts[device == config::SIM] = reply.text;
  }
  EXPECT_EQ(texts[0], texts[1]);
}

TEST_F(ServedModelTest, ACheckpointDirectoryItselfIsAccepted) {
  ASSERT_OK(WriteTestCheckpoint(run_, {.step = 3}));
  ASSERT_OK(WriteTestCheckpoint(run_, {.step = 12}));
  const std::string step = run_ + "/checkpoints/step-00000003";
  ASSERT_OK_AND_ASSIGN(const auto served, ServedModel::Load(step, Hardware(config::CPU)));
  EXPECT_EQ(served->step(), 3);
  EXPECT_EQ(served->checkpoint_dir(), step);
  // An empty prompt starts a text.
  ASSERT_OK_AND_ASSIGN(const auto prompt, served->EncodePrompt(""));
  EXPECT_THAT(prompt, ::testing::ElementsAre(*served->tokenizer().end_of_text_id()));
}

TEST_F(ServedModelTest, MissingTensorsAreListed) {
  ASSERT_OK(WriteTestCheckpoint(run_, {.left_out = "layers.1.ffn.up.weight"}));
  EXPECT_THAT(ServedModel::Load(run_, Hardware(config::CPU)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("1 missing: layers.1.ffn.up.weight")));
}

TEST_F(ServedModelTest, TheTokenizerMustBeTheModels) {
  ASSERT_OK(WriteTestCheckpoint(run_, {.extra_tokens = 3}));
  EXPECT_THAT(ServedModel::Load(run_, Hardware(config::CPU)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("the tokenizer has 268 tokens, the model 265")));
}

TEST_F(ServedModelTest, NoCheckpointIsOneClearError) {
  EXPECT_THAT(ServedModel::Load("", Hardware(config::CPU)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("serve.checkpoint")));
  EXPECT_THAT(ServedModel::Load(run_ + "/absent", Hardware(config::CPU)),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("absent")));
}

TEST_F(ServedModelTest, DamagedWeightsAreNotServed) {
  ASSERT_OK(WriteTestCheckpoint(run_, {}));
  const std::string shard = run_ + "/checkpoints/step-00000007/model-00000.safetensors";
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(shard));
  std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(size - 40);
  file.put('\x5a');
  file.close();
  EXPECT_THAT(ServedModel::Load(run_, Hardware(config::CPU)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("checksum")));
}

}  // namespace
}  // namespace plinth::infer
