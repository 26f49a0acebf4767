#include <cmath>
#include <deque>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/hardware/testing/device_fixture.h"
#include "plinth/hardware/testing/sample.h"
#include "plinth/train/optim/flat_layout.h"
#include "plinth/train/optim/gradient_store.h"
#include "plinth/train/optim/optimizer.h"

namespace plinth::train {
namespace {

using models::Init;
using models::Parameter;
using ::plinth::testing::DeviceTest;
using ::plinth::testing::SampleFloats;
using ::testing::Each;
using ::testing::ElementsAre;

config::ScheduleConfig Schedule(int64_t warmup, double final_ratio) {
  config::ScheduleConfig schedule;
  schedule.set_warmup_steps(warmup);
  schedule.set_final_ratio(final_ratio);
  return schedule;
}

TEST(LearningRateTest, RisesLinearlyThenFallsOnACosine) {
  const auto schedule = Schedule(10, 0.1);
  EXPECT_DOUBLE_EQ(LearningRate(2, schedule, 110, 1), 0.2);
  EXPECT_DOUBLE_EQ(LearningRate(2, schedule, 110, 5), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(2, schedule, 110, 10), 2.0);
  // A third of the way down cos is 1/2, half way it is 0.
  EXPECT_NEAR(LearningRate(2, Schedule(20, 0.1), 110, 50), 2 * (0.1 + 0.9 * 0.75), 1e-12);
  EXPECT_NEAR(LearningRate(2, schedule, 110, 60), 2 * 0.55, 1e-12);
  EXPECT_NEAR(LearningRate(2, schedule, 110, 110), 0.2, 1e-12);
}

TEST(LearningRateTest, EdgesOfWarmup) {
  EXPECT_NEAR(LearningRate(2, Schedule(0, 0), 1, 1), 0, 1e-12);
  EXPECT_DOUBLE_EQ(LearningRate(2, Schedule(4, 0), 4, 4), 2);
}

TEST(ClipScaleTest, ScalesOnlyWhatIsTooLong) {
  EXPECT_EQ(ClipScale(0.5, 1), 1);
  EXPECT_EQ(ClipScale(4, 1), 0.25);
  EXPECT_EQ(ClipScale(4, 0), 1) << "0 is no limit";
}

class OptimTest : public DeviceTest {
 protected:
  Parameter& Make(const Shape& shape, bool decays = true) {
    made_.emplace_back("p" + std::to_string(made_.size()), shape, Init::Zeros(), decays);
    made_.back().set_value(Upload(SampleFloats(shape.elements(), made_.size()), shape));
    parameters_.push_back(&made_.back());
    return made_.back();
  }
  // The gradient buffer of a layout, filled with values that do not depend on the layout.
  Tensor Gradients(const FlatLayout& layout) {
    Tensor flat = Upload(std::vector<float>(layout.elements(), 0), Shape({layout.elements()}));
    for (const FlatLayout::Slot& slot : layout.slots()) {
      const TensorView view = layout.View(flat, slot);
      const auto values = SampleFloats(view.elements(), 50 + layout.IndexOf(*slot.parameter));
      stream().CopyIn(view.data, values.data(), view.bytes());
    }
    return flat;
  }

  std::deque<Parameter> made_;
  std::vector<Parameter*> parameters_;
};

TEST_P(OptimTest, LayoutTilesTheBufferInReverseOrder) {
  for (const int64_t size : {1, 15, 16, 17, 100, 3}) Make(Shape({size}));
  for (const int64_t bucket_bytes : {1, 64, 200, 1 << 20}) {
    const FlatLayout layout(parameters_, bucket_bytes);
    int64_t next = 0;
    for (size_t i = parameters_.size(); i-- > 0;) {
      const FlatLayout::Slot& slot = layout.slots()[i];
      EXPECT_EQ(slot.parameter, parameters_[i]);
      EXPECT_EQ(slot.begin, next);
      next += (slot.parameter->shape().elements() + 15) / 16 * 16;
    }
    EXPECT_EQ(layout.elements(), next);
    int64_t covered = 0, counted = 0;
    for (const FlatLayout::Bucket& bucket : layout.buckets()) {
      EXPECT_EQ(bucket.begin, covered);
      covered = bucket.end;
      counted += bucket.parameters;
      const bool last = bucket.end == layout.elements();
      EXPECT_TRUE(last || (bucket.end - bucket.begin) * 4 >= bucket_bytes);
    }
    EXPECT_EQ(covered, layout.elements());
    EXPECT_EQ(counted, static_cast<int64_t>(parameters_.size()));
  }
}

TEST_P(OptimTest, NormIsTheSameForAllBucketsAndThreads) {
  for (const int64_t size : {5000, 7, 64}) Make(Shape({size}));
  double expected = 0;
  for (int i = 0; i < 3; ++i) {
    for (const float g : SampleFloats(parameters_[i]->shape().elements(), 50 + i)) {
      expected += static_cast<double>(g) * g;
    }
  }
  std::vector<double> norms;
  for (const int threads : {1, 2, 3}) {
    SetThreadCount(threads);
    for (const int64_t bucket_bytes : {1, 300, 1 << 20}) {
      const FlatLayout layout(parameters_, bucket_bytes);
      ASSERT_OK_AND_ASSIGN(const double norm,
                           GradientNorm(layout, Gradients(layout), ctx(), allocator()));
      norms.push_back(norm);
    }
  }
  EXPECT_NEAR(norms[0], std::sqrt(expected), 1e-12 * std::sqrt(expected));
  EXPECT_THAT(norms, Each(norms[0]));
}

TEST_P(OptimTest, AdamWMatchesTheFormulaInDouble) {
  Make(Shape({37}), /*decays=*/true);
  Make(Shape({20}), /*decays=*/false);
  config::AdamWConfig config;
  config.set_beta1(0.9);
  config.set_beta2(0.95);
  config.set_eps(1e-8);
  config.set_weight_decay(0.5);
  const FlatLayout layout(parameters_, 64);
  AdamWOptimizer optimizer(config, &layout, &ctx(), &allocator());
  const Tensor flat = Gradients(layout);
  constexpr double kLr = 0.01, kScale = 0.5;
  std::vector<std::vector<float>> before;
  for (const Parameter* p : parameters_) before.push_back(Download<float>(p->value()));
  for (int64_t step = 1; step <= 3; ++step) optimizer.Step(flat, kLr, kScale, step);
  for (size_t p = 0; p < parameters_.size(); ++p) {
    const auto g = SampleFloats(parameters_[p]->shape().elements(), 50 + p);
    const auto got = Download<float>(parameters_[p]->value());
    for (size_t i = 0; i < g.size(); ++i) {
      double w = before[p][i], m = 0, v = 0;
      for (int step = 1; step <= 3; ++step) {
        m = 0.9 * m + 0.1 * kScale * g[i];
        v = 0.95 * v + 0.05 * kScale * g[i] * kScale * g[i];
        const double direction =
            m / (1 - std::pow(0.9, step)) / (std::sqrt(v / (1 - std::pow(0.95, step))) + 1e-8);
        w -= kLr * (direction + (p == 0 ? 0.5 : 0.0) * w);
      }
      // Three f32 steps of size lr on a weight below 1: a few roundings of each.
      EXPECT_NEAR(got[i], w, 3 * 0x1p-24 + 3 * kLr * 32 * 0x1p-24);
    }
  }
}

TEST_P(OptimTest, StoreOverwritesThenAddsAndZeroesTheRest) {
  Parameter &first = Make(Shape({3})), &second = Make(Shape({3}));
  const FlatLayout layout(parameters_, 1);  // a bucket for each
  GradientStore store(&layout, &ctx(), &allocator());
  for (int step = 0; step < 2; ++step) {
    store.BeginStep();
    EXPECT_FALSE(store.Accumulate(second).holds_sum);
    EXPECT_TRUE(store.Accumulate(second).holds_sum);
    const std::vector<float> ones(3, 1);
    stream().CopyIn(store.Accumulate(second).view.data, ones.data(), 12);
    std::vector<int> buckets;
    store.Complete(second);  // not the last micro-batch: no bucket
    store.ExpectLast([&buckets](int b) { buckets.push_back(b); });
    store.Complete(second);
    EXPECT_THAT(buckets, ElementsAre(0)) << "the parameter used last completes first";
    store.FinishStep();
    EXPECT_THAT(buckets, ElementsAre(0, 1));
    EXPECT_THAT(Download<float>(layout.View(store.flat(), layout.slots()[0])), Each(0));
    EXPECT_THAT(Download<float>(layout.View(store.flat(), layout.slots()[1])), Each(1));
  }
  EXPECT_EQ(layout.IndexOf(first), 0);
}

TEST_P(OptimTest, BucketsAreCalledInOrderWhateverCompletesFirst) {
  for (int i = 0; i < 4; ++i) Make(Shape({2}));
  const FlatLayout layout(parameters_, 1);
  GradientStore store(&layout, &ctx(), &allocator());
  store.BeginStep();
  std::vector<int> buckets;
  store.ExpectLast([&buckets](int b) { buckets.push_back(b); });
  store.Complete(*parameters_[1]);  // bucket 2
  store.Complete(*parameters_[0]);  // bucket 3
  EXPECT_THAT(buckets, ElementsAre());
  store.Complete(*parameters_[3]);
  EXPECT_THAT(buckets, ElementsAre(0));
  store.Complete(*parameters_[2]);
  EXPECT_THAT(buckets, ElementsAre(0, 1, 2, 3));
}

INSTANTIATE_TEST_SUITE_P(Devices, OptimTest,
                         ::testing::ValuesIn(::plinth::testing::TestedDevices()),
                         ::plinth::testing::DeviceTestName);

}  // namespace
}  // namespace plinth::train
