#include "plinth/train/loop/evaluate.h"

#include <vector>

#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/hardware/testing/device_fixture.h"
#include "plinth/train/testing/double_ops.h"
#include "plinth/train/testing/small_model.h"

namespace plinth::train {
namespace {

const std::vector<std::vector<int32_t>> kSamples = {
    {4, 1, 5, 9, 2, 6}, {3, 1}, {5, 3, 5, 8, 9, 7, 9, 3, 2, 3}};

MicroBatch BatchOf(const std::vector<std::vector<int32_t>>& samples) {
  MicroBatch batch;
  for (const auto& sample : samples) batch.Add(sample);
  return batch;
}

using EvaluateTest = ::plinth::testing::DeviceTest;

TEST_P(EvaluateTest, AgreesWithDouble) {
  const auto model = testing::SmallModel(config::GPT2, /*tied=*/true, allocator(), stream());
  testing::DoubleOps::Values values;
  for (const models::Parameter* parameter : model->parameters()) {
    const auto elements = Download<float>(parameter->value());
    values[parameter] = {elements.begin(), elements.end()};
  }
  testing::DoubleOps ops(&values);
  const MicroBatch batch = BatchOf(kSamples);
  const double expected = testing::HeadLoss(model->Hidden(ops, batch.tokens()),
                                            values.at(&model->head()), batch.targets());
  ASSERT_OK_AND_ASSIGN(const double loss, EvaluateLoss(*model, batch, ctx()));
  EXPECT_NEAR(loss, expected, 240 * 0x1p-24 * expected);  // as in model_gradient_test
}

TEST_P(EvaluateTest, ATokensLossDoesNotDependOnTheBatch) {
  const auto model = testing::SmallModel(config::LLAMA, /*tied=*/false, allocator(), stream());
  double apart = 0;
  for (const auto& sample : kSamples) {
    ASSERT_OK_AND_ASSIGN(const double loss, EvaluateLoss(*model, BatchOf({sample}), ctx()));
    apart += loss;
  }
  ASSERT_OK_AND_ASSIGN(const double together, EvaluateLoss(*model, BatchOf(kSamples), ctx()));
  // Equal f32 losses, added in double in another order: a single changed f32 bit shows.
  EXPECT_NEAR(together, apart, 1e-13 * apart);
}

INSTANTIATE_TEST_SUITE_P(Devices, EvaluateTest,
                         ::testing::ValuesIn(::plinth::testing::TestedDevices()),
                         ::plinth::testing::DeviceTestName);

}  // namespace
}  // namespace plinth::train
