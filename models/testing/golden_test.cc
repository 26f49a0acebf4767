#include "plinth/models/testing/golden.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/hardware/testing/device_fixture.h"
#include "plinth/models/nn/eager_ops.h"

namespace plinth::models {
namespace {

class GoldenTest : public ::plinth::testing::DeviceTest {};

// Each value passes some 25 operations of at most 33 terms in f32 (unit roundoff 2^-24) on
// numbers of order one: 25 * 33 * 2^-24 = 5e-5 bounds the sum of all roundings, and they
// mostly cancel. A wrong formula is off by far more (the closest, GELU by erf, by 1e-4 to
// 1e-3 in every element).
constexpr double kTolerance = 2e-6;

TEST_P(GoldenTest, LogitsAndLossAgreeWithAnotherFramework) {
  for (const config::Architecture architecture : {config::GPT2, config::LLAMA}) {
    SCOPED_TRACE(config::Architecture_Name(architecture));
    ASSERT_OK_AND_ASSIGN(const testing::Golden golden, testing::LoadGolden(architecture));
    const auto model = testing::GoldenModel(golden, allocator(), stream());
    EagerOps ops(ctx());
    const std::vector<float> logits = Download<float>(model->Logits(
        ops, {.ids = golden.ids, .positions = golden.positions, .seq_starts = golden.seq_starts}));
    ASSERT_EQ(logits.size(), golden.logits_TV.size());
    double worst = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      ASSERT_TRUE(std::isfinite(logits[i]));
      worst = std::max(worst, std::fabs(logits[i] - golden.logits_TV[i]));
    }
    EXPECT_LT(worst, kTolerance);

    double loss = 0;
    int counted = 0;
    const size_t vocab = static_cast<size_t>(golden.config.vocab_size());
    for (size_t t = 0; t < golden.targets.size(); ++t) {
      if (golden.targets[t] < 0) continue;
      double sum = 0;
      for (size_t v = 0; v < vocab; ++v) sum += std::exp(double{logits[t * vocab + v]});
      loss += std::log(sum) - logits[t * vocab + static_cast<size_t>(golden.targets[t])];
      ++counted;
    }
    EXPECT_NEAR(loss / counted, golden.loss, kTolerance);
  }
}

// The gradients belong to training; here: they cover the model's parameters exactly.
TEST_P(GoldenTest, HasAGradientForEveryParameter) {
  for (const config::Architecture architecture : {config::GPT2, config::LLAMA}) {
    ASSERT_OK_AND_ASSIGN(const testing::Golden golden, testing::LoadGolden(architecture));
    const auto model = testing::GoldenModel(golden, allocator(), stream());
    EXPECT_EQ(golden.gradients.size(), model->parameters().size());
    for (const Parameter* p : model->parameters()) {
      const auto it = golden.gradients.find(p->name());
      ASSERT_NE(it, golden.gradients.end()) << p->name();
      EXPECT_EQ(static_cast<int64_t>(it->second.size()), p->shape().elements()) << p->name();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, GoldenTest,
                         ::testing::ValuesIn(::plinth::testing::TestedDevices()),
                         ::plinth::testing::DeviceTestName);

}  // namespace
}  // namespace plinth::models
