#include "plinth/storage/formats/safetensors/model.h"

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/storage/formats/safetensors/writer.h"
#include "plinth/storage/io/directory.h"

namespace plinth::storage {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = ::testing::TempDir() + "/model_" +
           ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
  }
  // A shard whose U8 tensors hold one byte each: `fill`.
  void Shard(const std::string& file, const std::vector<std::string>& names, char fill) {
    const std::string byte(1, fill);
    std::vector<SafetensorsTensor> tensors;
    for (const std::string& name : names) {
      tensors.push_back({{name, DType::kU8, {1}}, std::as_bytes(std::span(byte))});
    }
    ASSERT_OK(WriteSafetensors(dir_ + "/" + file, tensors));
  }
  void Index(const std::string& weight_map) {
    ASSERT_OK(WriteFileAtomically(
        dir_ + "/model.safetensors.index.json",
        "{\"metadata\":{\"total_size\":2,\"x\":[{}]},\"weight_map\":" + weight_map + "}"));
  }
  static char ValueOf(const SafetensorsModel& model, const std::string& name) {
    return static_cast<char>(model.Find(name)->bytes[0]);
  }
  std::string dir_;
};

TEST_F(ModelTest, IndexOfTwoShards) {
  Shard("s1.safetensors", {"a"}, '1');
  Shard("s2.safetensors", {"b"}, '2');
  Index(R"({"a":"s1.safetensors","b":"s2.safetensors"})");
  for (const std::string& path : {dir_, dir_ + "/model.safetensors.index.json"}) {
    ASSERT_OK_AND_ASSIGN(const SafetensorsModel model, SafetensorsModel::Open(path));
    EXPECT_THAT(model.names(), ElementsAre("a", "b"));
    EXPECT_EQ(ValueOf(model, "b"), '2');
    EXPECT_OK(model.Require(std::vector<std::string>{"b", "a"}));
    EXPECT_THAT(model.Find("c").status(), StatusIs(absl::StatusCode::kNotFound));
  }
}

TEST_F(ModelTest, ThreeWaysToLackATensorAreThreeErrors) {
  Shard("s1.safetensors", {"a", "extra"}, '1');
  Shard("s2.safetensors", {"b"}, '2');

  Index(R"({"a":"s1.safetensors","b":"gone.safetensors"})");
  EXPECT_THAT(SafetensorsModel::Open(dir_).status(),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("shard file \"gone.safetensors\" is absent"),
                             HasSubstr("tensor \"b\""), HasSubstr("index.json"))));

  Index(R"({"a":"s1.safetensors","c":"s2.safetensors"})");
  EXPECT_THAT(SafetensorsModel::Open(dir_).status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("lists tensor \"c\" in shard \"s2.safetensors\", but that "
                                 "shard's header lacks it")));

  Index(R"({"a":"s1.safetensors","b":"s2.safetensors"})");
  ASSERT_OK_AND_ASSIGN(const SafetensorsModel model, SafetensorsModel::Open(dir_));
  EXPECT_THAT(model.Require(std::vector<std::string>{"a", "needed", "extra"}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("lacks 2 of 3 required tensors: \"needed\""),
                             HasSubstr("\"extra\" (in shard "), HasSubstr("but not listed)"),
                             Not(HasSubstr("\"a\"")))));
}

TEST_F(ModelTest, LongListsOfMissingTensorsAreCut) {
  Shard("m.safetensors", {}, '1');
  ASSERT_OK_AND_ASSIGN(const SafetensorsModel model, SafetensorsModel::Open(dir_));
  EXPECT_THAT(model.Require(std::vector<std::string>(13, "x")),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("and 3 more")));
}

TEST_F(ModelTest, IndexChoosesAmongCopiesAndWithoutItCopiesAreRefused) {
  Shard("s1.safetensors", {"tied", "a"}, '1');
  Shard("s2.safetensors", {"tied", "b"}, '2');
  EXPECT_THAT(SafetensorsModel::Open(dir_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("tensor \"tied\" is in both"), HasSubstr("s1.safetensors"),
                             HasSubstr("s2.safetensors"))));
  for (const char which : {'1', '2'}) {
    Index(std::string(R"({"tied":"s)") + which +
          R"(.safetensors","a":"s1.safetensors","b":"s2.safetensors"})");
    ASSERT_OK_AND_ASSIGN(const SafetensorsModel model, SafetensorsModel::Open(dir_));
    EXPECT_EQ(ValueOf(model, "tied"), which);
  }
}

TEST_F(ModelTest, ShardsWithoutIndexAreJoined) {
  Shard("s1.safetensors", {"a"}, '1');
  Shard("s2.safetensors", {"b"}, '2');
  ASSERT_OK_AND_ASSIGN(const SafetensorsModel both, SafetensorsModel::Open(dir_));
  EXPECT_THAT(both.names(), ElementsAre("a", "b"));
  ASSERT_OK_AND_ASSIGN(const SafetensorsModel one,
                       SafetensorsModel::Open(dir_ + "/s1.safetensors"));
  EXPECT_THAT(one.names(), ElementsAre("a"));
}

TEST_F(ModelTest, NumberedShardsWithoutIndexMustAllBeThere) {
  Shard("m-00001-of-00002.safetensors", {"a"}, '1');
  EXPECT_THAT(SafetensorsModel::Open(dir_).status(),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("shard file \"m-00002-of-00002.safetensors\" is absent")));
  Shard("m-00002-of-00002.safetensors", {"b"}, '2');
  Shard("x-of-00009.safetensors", {"c"}, '3');
  ASSERT_OK_AND_ASSIGN(const SafetensorsModel model, SafetensorsModel::Open(dir_));
  EXPECT_THAT(model.names(), ElementsAre("a", "b", "c"));
}

TEST_F(ModelTest, NothingThere) {
  EXPECT_THAT(SafetensorsModel::Open(dir_).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("holds neither")));
  EXPECT_THAT(SafetensorsModel::Open(dir_ + "/none").status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none")));
}

TEST_F(ModelTest, DamagedShardIsNamed) {
  Shard("s1.safetensors", {"a"}, '1');
  ASSERT_OK(WriteFileAtomically(dir_ + "/s1.safetensors", "short"));
  Index(R"({"a":"s1.safetensors"})");
  EXPECT_THAT(SafetensorsModel::Open(dir_).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("s1.safetensors: expected")));
}

TEST_F(ModelTest, MalformedIndexes) {
  Shard("s1.safetensors", {"a"}, '1');
  const std::pair<const char*, const char*> cases[] = {
      {"", "JSON byte 0"},
      {"[]", "index: expected an object, got an array"},
      {"{}", "no \"weight_map\""},
      {R"({"weight_map":[]})", "weight_map: expected an object"},
      {R"({"weight_map":"x"})", "expected an object, got a string"},
      {R"({"weight_map":{"a":1}})", "tensor \"a\": expected a file name, got a number"},
      {R"({"weight_map":{"a":{}}})", "tensor \"a\": expected a file name, got an object"},
      {R"({"weight_map":{"a":["s1.safetensors"]}})", "expected a file name, got an array"},
      {R"({"weight_map":{"a":"s1.safetensors","a":"s1.safetensors"}})", "listed twice"},
      {R"({"weight_map":{},"weight_map":{}})", "two keys \"weight_map\""},
      {R"({"weight_map":{},"other":{}})", "unexpected key \"other\""},
      {R"({"weight_map":{"a":"../s1.safetensors"}})", "not the name of a file beside the index"},
      {R"({"weight_map":{"a":"/etc/passwd"}})", "not the name of a file"},
      {R"({"weight_map":{"a":".."}})", "not the name of a file"},
      {R"({"weight_map":{"a":""}})", "not the name of a file"},
      {R"({"weight_map":{}}})", "text after the end"},
  };
  for (const auto& [text, message] : cases) {
    ASSERT_OK(WriteFileAtomically(dir_ + "/model.safetensors.index.json", text));
    EXPECT_THAT(SafetensorsModel::Open(dir_).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(message), HasSubstr("index.json"))))
        << text;
  }
}

}  // namespace
}  // namespace plinth::storage
