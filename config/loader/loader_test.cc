#include "plinth/config/loader/loader.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::config {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(Loader, UnknownFieldNamesFileLineAndColumn) {
  EXPECT_THAT(ParseRunConfig("name: \"x\"\nmodel {\n  layer: 3\n}\n", "run.textproto", {}),
              StatusIs(kInvalid, AllOf(StartsWith("run.textproto:3:"), HasSubstr("layer"))));
  EXPECT_THAT(ParseRunConfig("model { layers: two }", "run.textproto", {}),
              StatusIs(kInvalid, StartsWith("run.textproto:1:")));
  EXPECT_THAT(ParseRunConfig("name: \"a\"\nname: \"b\"", "run.textproto", {}),
              StatusIs(kInvalid, StartsWith("run.textproto:2:")));
}

TEST(Loader, MissingFileIsNamed) {
  EXPECT_THAT(LoadRunConfig("/nowhere/run.textproto", {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nowhere/run.textproto")));
}

TEST(Loader, OnlyRegularFilesAreRead) {
  const std::string pipe = ::testing::TempDir() + "/pipe.textproto";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {std::string("/"), pipe, std::string("/dev/zero")}) {
    EXPECT_THAT(LoadRunConfig(path, {}),
                StatusIs(kInvalid, HasSubstr("\"" + path + "\": it is not a regular file")));
  }
}

TEST(Loader, AFileNamedByMistakeIsNotRead) {
  const std::string path = ::testing::TempDir() + "/large.textproto";
  std::ofstream(path).flush();
  std::filesystem::resize_file(path, 1 << 30);  // all of it a hole
  EXPECT_THAT(LoadRunConfig(path, {}), StatusIs(kInvalid, HasSubstr("it has more than")));
  std::filesystem::remove(path);
}

TEST(Loader, AnEmptyFileHasNothingSet) {
  const std::string path = ::testing::TempDir() + "/empty.textproto";
  std::ofstream(path).flush();
  ASSERT_OK_AND_ASSIGN(const RunConfig config, LoadRunConfig(path, {}));
  EXPECT_THAT(Validate(config, Purpose::kPlan), Contains(HasSubstr("model.layers")));
}

TEST(Loader, SettingsOverrideInOrder) {
  ASSERT_OK_AND_ASSIGN(const RunConfig config,
                       ParseRunConfig("model { layers: 2 tie_embeddings: true }", "t",
                                      {"model.layers=3", "model.layers=4", "name=it's \"quoted\"\\",
                                       "train.adamw.lr=1e-3", "hardware.device=SIM",
                                       "model.tie_embeddings=false", "serve.checkpoint=a=b"}));
  EXPECT_EQ(config.model().layers(), 4);
  EXPECT_FALSE(config.model().tie_embeddings());
  EXPECT_EQ(config.name(), "it's \"quoted\"\\");
  EXPECT_EQ(config.train().adamw().lr(), 1e-3);
  EXPECT_EQ(config.hardware().device(), SIM);
  EXPECT_EQ(config.serve().checkpoint(), "a=b");
}

TEST(Loader, BadSettingsSayWhatWasExpected) {
  RunConfig config;
  EXPECT_THAT(ApplySetting("train.steps", config), StatusIs(kInvalid, HasSubstr("path=value")));
  EXPECT_THAT(ApplySetting("train.stepz=1", config),
              StatusIs(kInvalid, AllOf(HasSubstr("\"stepz\""), HasSubstr("global_batch"))));
  EXPECT_THAT(ApplySetting("train=1", config), StatusIs(kInvalid, HasSubstr("is a group")));
  EXPECT_THAT(ApplySetting("train.steps.x=1", config), StatusIs(kInvalid, HasSubstr("no fields")));
  EXPECT_THAT(ApplySetting("train.steps=many", config), StatusIs(kInvalid, HasSubstr("steps")));
  EXPECT_THAT(ApplySetting("hardware.device=TPU", config), StatusIs(kInvalid, HasSubstr("TPU")));
  // A value cannot smuggle in further fields.
  EXPECT_THAT(ApplySetting("train.steps=1 } model { layers: 9", config), StatusIs(kInvalid));
}

TEST(Loader, TextRoundTrips) {
  ASSERT_OK_AND_ASSIGN(const RunConfig config, LoadRunConfig("config/presets/tiny_cpu.textproto",
                                                             {"train.adamw.lr=0.00123456789"}));
  ASSERT_OK_AND_ASSIGN(const RunConfig again, ParseRunConfig(ToText(config), "text", {}));
  EXPECT_EQ(ToText(again), ToText(config));
  EXPECT_EQ(again.train().adamw().lr(), 0.00123456789);
}

TEST(Validate, ReportsEveryViolationAtOnce) {
  ASSERT_OK_AND_ASSIGN(const RunConfig config,
                       ParseRunConfig("model { architecture: LLAMA layers: -1 heads: 3 "
                                      "kv_heads: 2 head_dim: 5 } train { adamw { beta1: 1 } }",
                                      "t", {}));
  const std::vector<std::string> found = Validate(config, Purpose::kTrain);
  for (const char* expected :
       {"model.layers: must be at least 1, is -1", "model.head_dim: must be a multiple of 2",
        "model.heads: must be a multiple of model.kv_heads (2), is 3; nearest: 2 or 4",
        "train.adamw.beta1: must lie in [0, 1), is 1", "data.tokenizer: is required",
        "train.run_dir: is required", "train.steps: must be at least 1, is 0"}) {
    EXPECT_THAT(found, Contains(StartsWith(expected)));
  }
  EXPECT_EQ(std::set<std::string>(found.begin(), found.end()).size(), found.size());
}

TEST(Validate, AMistypedNumberOfLayersIsRefused) {
  ASSERT_OK_AND_ASSIGN(const RunConfig config, LoadRunConfig("config/presets/tiny_cpu.textproto",
                                                             {"model.layers=2000000000"}));
  EXPECT_THAT(Validate(config, Purpose::kPlan),
              Contains("model.layers: must be at most the most layers (4096), is 2000000000"));
}

TEST(Validate, WorldSizeMustDivideTheBatch) {
  ASSERT_OK_AND_ASSIGN(
      const RunConfig config,
      LoadRunConfig("config/presets/tiny_cpu.textproto",
                    {"cluster.ranks=3", "train.global_batch=16", "train.micro_batch=2"}));
  EXPECT_THAT(Validate(config, Purpose::kTrain),
              Contains(HasSubstr("train.global_batch: must be a multiple of cluster.ranks * "
                                 "train.micro_batch (6), is 16; nearest: 12 or 18")));
}

TEST(Validate, EveryPresetIsValid) {
  int presets = 0;
  for (const auto& entry : std::filesystem::directory_iterator("config/presets")) {
    if (entry.path().extension() != ".textproto") continue;
    ++presets;
    ASSERT_OK_AND_ASSIGN(const RunConfig config, LoadRunConfig(entry.path().string(), {}));
    EXPECT_THAT(Validate(config, Purpose::kTrain), IsEmpty()) << entry.path();
  }
  EXPECT_GE(presets, 3);
}

}  // namespace
}  // namespace plinth::config
