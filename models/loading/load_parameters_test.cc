#include "plinth/models/loading/load_parameters.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/config/model.pb.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/hardware/device/cpu/cpu_device.h"
#include "plinth/models/zoo/create.h"

namespace plinth::models {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class FakeSource : public ParameterSource {
 public:
  explicit FakeSource(const LanguageModel& like) {
    for (const Parameter* p : like.parameters()) shapes[p->name()] = p->shape();
  }
  std::string description() const override { return "checkpoint fake"; }
  std::vector<SourceTensor> tensors() const override {
    std::vector<SourceTensor> list;
    for (const auto& [name, shape] : shapes) list.push_back({name, shape});
    return list;
  }
  absl::Status Read(const std::string& name, std::span<float> elements) override {
    ++reads;
    if (name == broken) return absl::DataLossError("checksum differs");
    for (size_t i = 0; i < elements.size(); ++i) {
      elements[i] = static_cast<float>(name.size()) + static_cast<float>(i);
    }
    return absl::OkStatus();
  }

  std::map<std::string, Shape> shapes;
  std::string broken;
  int reads = 0;
};

class LoadParametersTest : public ::testing::Test {
 protected:
  LoadParametersTest() {
    config::ModelConfig config;
    config.set_architecture(config::LLAMA);
    config.set_vocab_size(11);
    config.set_layers(2);
    config.set_model_dim(6);
    config.set_heads(3);
    config.set_ffn_dim(5);
    config.set_max_positions(7);
    auto created = CreateModel(config);
    CHECK_OK(created);
    model_ = *std::move(created);
  }
  absl::Status Load(FakeSource& source) {
    return LoadParameters(*model_, source, allocator_, *stream_);
  }

  std::unique_ptr<Device> device_ = CreateCpuDevice();
  CachingAllocator allocator_{device_.get()};
  std::unique_ptr<Stream> stream_ = device_->CreateStream();
  std::unique_ptr<LanguageModel> model_;
};

TEST_F(LoadParametersTest, GivesEveryParameterTheSourcesElements) {
  FakeSource source(*model_);
  ASSERT_OK(Load(source));
  ASSERT_OK(stream_->Synchronize());
  for (const Parameter* p : model_->parameters()) {
    ASSERT_EQ(p->value().shape(), p->shape()) << p->name();
    const float* values = p->value().view().ptr<float>();
    for (int64_t i = 0; i < p->shape().elements(); ++i) {
      ASSERT_EQ(values[i], static_cast<float>(p->name().size()) + static_cast<float>(i));
    }
  }
}

TEST_F(LoadParametersTest, ListsEveryMisfitBeforeAnythingIsReadOrAllocated) {
  FakeSource source(*model_);
  source.shapes.erase("layers.1.attention.q.weight");
  source.shapes["lora_a.weight"] = {2, 3};
  source.shapes["head.weight"] = {12, 6};
  EXPECT_THAT(
      Load(source),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("checkpoint fake"), HasSubstr("1 missing: layers.1.attention.q"),
                     HasSubstr("1 extra: lora_a.weight"),
                     HasSubstr("head.weight (expected [11,6], got [12,6])"))));
  EXPECT_EQ(source.reads, 0);
  EXPECT_EQ(allocator_.stats().reserved_bytes, 0);
}

TEST_F(LoadParametersTest, ShortensLongLists) {
  FakeSource source(*model_);
  source.shapes.clear();
  EXPECT_THAT(Load(source), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     AllOf(HasSubstr("21 missing"), HasSubstr("and 13 more"))));
}

TEST_F(LoadParametersTest, ReadErrorsNameTheTensor) {
  FakeSource source(*model_);
  source.broken = "layers.0.ffn.up.weight";
  EXPECT_THAT(Load(source), StatusIs(absl::StatusCode::kDataLoss,
                                     AllOf(HasSubstr("checkpoint fake: layers.0.ffn.up.weight"),
                                           HasSubstr("checksum differs"))));
}

}  // namespace
}  // namespace plinth::models
