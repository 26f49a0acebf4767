// Whole models: loss and every parameter's gradient against double precision.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/hardware/testing/device_fixture.h"
#include "plinth/models/nn/model.h"
#include "plinth/models/testing/golden.h"
#include "plinth/train/autograd/tape_ops.h"
#include "plinth/train/loss/head_loss.h"
#include "plinth/train/testing/double_ops.h"
#include "plinth/train/testing/map_sink.h"
#include "plinth/train/testing/small_model.h"

namespace plinth::train {
namespace {

using models::LanguageModel;
using models::Parameter;
using ::plinth::testing::DeviceTest;

const std::vector<int32_t> kIds = {1, 4, 9, 9, 0, 10, 3, 1, 2};
const std::vector<int32_t> kPositions = {0, 1, 2, 3, 4, 0, 0, 1, 2};
const std::vector<int32_t> kStarts = {0, 5, 6, 9};
const std::vector<int32_t> kTargets = {4, 9, -1, 0, 7, 2, 1, -1, 10};
const models::TokenBatch kBatch = {.ids = kIds, .positions = kPositions, .seq_starts = kStarts};
constexpr float kWeight = 0.25f;
// Roundings on the way of a gradient: some twenty operations with sums of up to 12 terms.
constexpr double kTolerance = 20 * 12 * 0x1p-24;

struct Gradients {
  double loss = 0;
  std::map<const Parameter*, std::vector<float>> of;
  std::vector<const Parameter*> completed;
};

class ModelGradientTest : public DeviceTest {
 protected:
  Gradients Run(const LanguageModel& model, TapeOptions options, int64_t logits_bytes) {
    testing::MapSink sink(&allocator());
    TapeOps tape(&ctx(), &allocator(), &sink, options);
    const Tensor hidden = model.Hidden(tape, kBatch);
    const HeadLossResult head =
        HeadLoss(tape, hidden, model.head(), kTargets, kWeight, logits_bytes);
    tape.Backward(hidden, head.dhidden_TD);
    Gradients result;
    for (const float loss : Download<float>(head.loss_T)) result.loss += loss;
    for (const auto& [parameter, gradient] : sink.gradients) {
      result.of[parameter] = Download<float>(gradient);
    }
    result.completed = sink.completed;
    return result;
  }

  void ExpectAgreesWithDouble(config::Architecture architecture, bool tied) {
    const auto model = testing::SmallModel(architecture, tied, allocator(), stream());
    testing::DoubleOps::Values values;
    for (const Parameter* parameter : model->parameters()) {
      const auto elements = Download<float>(parameter->value());
      values[parameter] = {elements.begin(), elements.end()};
    }
    testing::DoubleOps ops(&values);
    const auto loss = [&] {
      return testing::HeadLoss(model->Hidden(ops, kBatch), values.at(&model->head()), kTargets);
    };
    const auto truth = testing::CentralDifferences(values, loss);
    const Gradients got = Run(*model, {}, kLogitsBytes);
    EXPECT_NEAR(got.loss, loss(), kTolerance * loss());
    // Each parameter completes once, and the one used last completes first.
    EXPECT_THAT(got.completed, ::testing::UnorderedElementsAreArray(model->parameters()));
    double scale = 0;
    for (const auto& [parameter, expected] : truth) {
      for (const double g : expected) scale = std::max(scale, std::abs(kWeight * g));
    }
    for (const auto& [parameter, expected] : truth) {
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(got.of.at(parameter)[i], kWeight * expected[i], kTolerance * scale)
            << parameter->name() << "[" << i << "]";
      }
    }
  }
};

TEST_P(ModelGradientTest, Gpt2AgreesWithCentralDifferences) {
  ExpectAgreesWithDouble(config::GPT2, true);
}

TEST_P(ModelGradientTest, LlamaAgreesWithCentralDifferences) {
  ExpectAgreesWithDouble(config::LLAMA, false);
}

TEST_P(ModelGradientTest, TiedLlamaAgreesWithCentralDifferences) {
  ExpectAgreesWithDouble(config::LLAMA, true);
}

TEST_P(ModelGradientTest, AgreesWithAnotherFramework) {
  for (const auto architecture : {config::GPT2, config::LLAMA}) {
    ASSERT_OK_AND_ASSIGN(const auto golden, models::testing::LoadGolden(architecture));
    const auto model = models::testing::GoldenModel(golden, allocator(), stream());
    testing::MapSink sink(&allocator());
    TapeOps tape(&ctx(), &allocator(), &sink);
    const models::TokenBatch batch = {
        .ids = golden.ids, .positions = golden.positions, .seq_starts = golden.seq_starts};
    const auto counted = std::count_if(golden.targets.begin(), golden.targets.end(),
                                       [](int32_t target) { return target >= 0; });
    const Tensor hidden = model->Hidden(tape, batch);
    const float weight = 1.0f / static_cast<float>(counted);
    const HeadLossResult head = HeadLoss(tape, hidden, model->head(), golden.targets, weight);
    tape.Backward(hidden, head.dhidden_TD);
    double loss = 0;
    for (const float token_loss : Download<float>(head.loss_T)) loss += token_loss;
    EXPECT_NEAR(loss / static_cast<double>(counted), golden.loss, kTolerance);
    for (const Parameter* parameter : model->parameters()) {
      const auto got = Download<float>(sink.gradients.at(parameter));
      const std::vector<double>& expected = golden.gradients.at(parameter->name());
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], expected[i], kTolerance) << parameter->name() << "[" << i << "]";
      }
    }
  }
}

TEST_P(ModelGradientTest, RecomputingGivesTheSameBits) {
  for (const auto architecture : {config::GPT2, config::LLAMA}) {
    const auto model = testing::SmallModel(architecture, true, allocator(), stream());
    const Gradients kept = Run(*model, {.recompute = false}, kLogitsBytes);
    const Gradients recomputed = Run(*model, {.recompute = true}, kLogitsBytes);
    EXPECT_EQ(kept.loss, recomputed.loss);
    EXPECT_EQ(kept.of, recomputed.of);
    EXPECT_EQ(kept.completed, recomputed.completed);
  }
}

TEST_P(ModelGradientTest, RecomputingKeepsLessMemory) {
  const auto model = testing::SmallModel(config::LLAMA, true, allocator(), stream());
  const auto peak = [&](TapeOptions options) {
    allocator().ResetPeak();
    Run(*model, options, kLogitsBytes);
    return allocator().stats().peak_bytes;
  };
  EXPECT_LT(peak({.recompute = true}), peak({.recompute = false}));
  EXPECT_EQ(peak({.recompute = false}), peak({.recompute = false})) << "everything was freed";
}

TEST_P(ModelGradientTest, SlicesOfLogitsAddUp) {
  const auto model = testing::SmallModel(config::LLAMA, true, allocator(), stream());
  const Gradients whole = Run(*model, {}, kLogitsBytes);
  for (const int64_t rows : {1, 2, 4, 9}) {
    const Gradients sliced = Run(*model, {}, rows * 4 * 11);
    EXPECT_NEAR(sliced.loss, whole.loss, kTolerance * whole.loss);
    for (const auto& [parameter, expected] : whole.of) {
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(sliced.of.at(parameter)[i], expected[i], kTolerance) << parameter->name();
      }
    }
  }
}

TEST_P(ModelGradientTest, ATapeCanBeUsedAgain) {
  const auto model = testing::SmallModel(config::GPT2, true, allocator(), stream());
  testing::MapSink sink(&allocator());
  TapeOps tape(&ctx(), &allocator(), &sink);
  std::vector<std::vector<float>> embedding;
  for (int pass = 0; pass < 2; ++pass) {
    const Tensor hidden = model->Hidden(tape, kBatch);
    const HeadLossResult head = HeadLoss(tape, hidden, model->head(), kTargets, kWeight);
    tape.Backward(hidden, head.dhidden_TD);
    embedding.push_back(Download<float>(sink.gradients.at(&model->head())));
  }
  // The second pass adds the same again: exact but for the order in which two sums meet.
  for (size_t i = 0; i < embedding[0].size(); ++i) {
    EXPECT_NEAR(embedding[1][i], 2 * embedding[0][i], kTolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelGradientTest,
                         ::testing::ValuesIn(::plinth::testing::TestedDevices()),
                         ::plinth::testing::DeviceTestName);

}  // namespace
}  // namespace plinth::train
