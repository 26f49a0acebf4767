// Each operation of TapeOps against central differences in double.
#include <cmath>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "plinth/hardware/testing/device_fixture.h"
#include "plinth/hardware/testing/sample.h"
#include "plinth/train/autograd/tape_ops.h"
#include "plinth/train/testing/double_ops.h"
#include "plinth/train/testing/map_sink.h"

namespace plinth::train {
namespace {

using models::Init;
using models::Ops;
using models::Parameter;
using ::plinth::testing::DeviceTest;
using ::plinth::testing::SampleFloats;

const std::vector<int32_t> kIds = {0, 1, 2, 3, 4, 5, 6};
const std::vector<int32_t> kPositions = {0, 1, 2, 3, 0, 1, 2};
const std::vector<int32_t> kStarts = {0, 4, 7};
const std::vector<float> kInvFreq = {1.0f, 0.3f};
const models::TokenBatch kBatch = {.ids = kIds, .positions = kPositions, .seq_starts = kStarts};

class OpGradientTest : public DeviceTest {
 protected:
  Parameter& Make(const Shape& shape) {
    parameters_.emplace_back("p" + std::to_string(parameters_.size()), shape, Init::Zeros(), true);
    Parameter& parameter = parameters_.back();
    const auto values = SampleFloats(shape.elements(), parameters_.size());
    parameter.set_value(Upload(values, shape));
    values_[&parameter] = ::plinth::testing::ToDouble(values);
    return parameter;
  }
  // An operand that the graph differentiates by, [7, columns].
  Parameter& Operand(int64_t columns) { return Make({7, columns}); }

  // Compares for the loss sum(c . graph) with fixed c. `rounding` bounds the terms that a
  // gradient sums, times the operations on its way: the error in units of 2^-24.
  void Expect(const std::function<Tensor(Ops&)>& graph, TapeOptions options = {},
              double rounding = 256) {
    testing::MapSink sink(&allocator());
    TapeOps tape(&ctx(), &allocator(), &sink, options);
    const Tensor y = graph(tape);
    const auto c = SampleFloats(y.elements(), 99);
    tape.Backward(y, Upload(c, y.shape()));
    EXPECT_EQ(sink.completed.size(), parameters_.size());

    testing::DoubleOps ops(&values_);
    const auto truth = testing::CentralDifferences(values_, [&] {
      const Tensor value = graph(ops);
      double loss = 0;
      for (size_t i = 0; i < c.size(); ++i) loss += c[i] * value.view().ptr<double>()[i];
      return loss;
    });
    for (const auto& [parameter, expected] : truth) {
      double scale = 0;
      for (const double g : expected) scale = std::max(scale, std::abs(g));
      ASSERT_GT(scale, 0) << parameter->name();
      const auto got = Download<float>(sink.gradients.at(parameter));
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(got[i], expected[i], rounding * 0x1p-24 * std::max(scale, 1.0) + 1e-7)
            << parameter->name() << "[" << i << "]";
      }
    }
  }

  std::deque<Parameter> parameters_;  // addresses are identities
  testing::DoubleOps::Values values_;
};

TEST_P(OpGradientTest, EmbeddingWithRepeatedIds) {
  Parameter& table = Make({3, 5});
  const std::vector<int32_t> ids = {2, 0, 2, 2, 1};
  Expect([&](Ops& ops) { return ops.Embedding(table, ids); });
}

TEST_P(OpGradientTest, LinearWithAndWithoutBias) {
  Parameter &x = Operand(5), &w = Make({3, 5}), &bias = Make(Shape({3})), &u = Make({4, 3});
  Expect([&](Ops& ops) {
    return ops.Linear(ops.Linear(ops.Embedding(x, kIds), w, &bias), u, nullptr);
  });
}

TEST_P(OpGradientTest, LayerNorm) {
  Parameter &x = Operand(6), &gain = Make(Shape({6})), &bias = Make(Shape({6}));
  Expect([&](Ops& ops) { return ops.LayerNorm(ops.Embedding(x, kIds), gain, bias, 1e-5f); });
}

TEST_P(OpGradientTest, RmsNorm) {
  Parameter &x = Operand(6), &gain = Make(Shape({6}));
  Expect([&](Ops& ops) { return ops.RmsNorm(ops.Embedding(x, kIds), gain, 1e-5f); });
}

TEST_P(OpGradientTest, Activations) {
  Parameter &x = Operand(6), &up = Operand(6);
  Expect([&](Ops& ops) {
    return ops.SwiGlu(ops.Gelu(ops.Embedding(x, kIds)), ops.Embedding(up, kIds));
  });
}

TEST_P(OpGradientTest, AddOfAValueUsedThreeTimes) {
  Parameter& x = Operand(4);
  Expect([&](Ops& ops) {
    const Tensor e = ops.Embedding(x, kIds);
    return ops.Add(ops.Add(e, e), ops.Gelu(e));
  });
}

TEST_P(OpGradientTest, Rope) {
  Parameter& x = Operand(8);
  const models::RopeSpec spec = {.heads = 2, .head_dim = 4, .inv_freq = kInvFreq};
  Expect([&](Ops& ops) { return ops.Rope(ops.Embedding(x, kIds), spec, kBatch); });
}

TEST_P(OpGradientTest, AttentionWithGroupedHeads) {
  Parameter &q = Operand(16), &k = Operand(8), &v = Operand(8);
  const models::AttentionSpec spec = {.heads = 4, .kv_heads = 2, .head_dim = 4, .scale = 0.5f};
  Expect([&](Ops& ops) {
    return ops.Attention(ops.Embedding(q, kIds), ops.Embedding(k, kIds), ops.Embedding(v, kIds),
                         spec, kBatch);
  });
}

TEST_P(OpGradientTest, GatherRows) {
  Parameter& x = Operand(4);
  const std::vector<int32_t> rows = {6, 0, 3};
  Expect([&](Ops& ops) { return ops.GatherRows(ops.Embedding(x, kIds), rows); });
}

TEST_P(OpGradientTest, AParameterUsedInsideAndOutsideOfNestedCheckpoints) {
  Parameter &x = Operand(4), &w = Make({4, 4});
  const auto graph = [&](Ops& ops) {
    const Tensor e = ops.Linear(ops.Embedding(x, kIds), w, nullptr);
    return ops.Checkpoint([e, &w](Ops& outer) {
      const Tensor g = outer.Gelu(outer.Linear(e, w, nullptr));
      return outer.Checkpoint(
          [e, g, &w](Ops& inner) { return inner.Add(e, inner.Linear(g, w, nullptr)); });
    });
  };
  for (const bool recompute : {false, true}) Expect(graph, {.recompute = recompute});
}

INSTANTIATE_TEST_SUITE_P(Devices, OpGradientTest,
                         ::testing::ValuesIn(::plinth::testing::TestedDevices()),
                         ::plinth::testing::DeviceTestName);

}  // namespace
}  // namespace plinth::train
