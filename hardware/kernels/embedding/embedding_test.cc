#include "plinth/hardware/kernels/embedding/embedding.h"

#include "plinth/hardware/testing/compare.h"
#include "plinth/hardware/testing/device_fixture.h"
#include "plinth/hardware/testing/sample.h"

namespace plinth {
namespace {

using testing::DeviceTest;
using testing::SampleFloats;
using testing::SampleInts;

class EmbeddingTest : public DeviceTest {};

TEST_P(EmbeddingTest, CopiesTheRowOfEachId) {
  for (int64_t width : {0, 1, 15, 16, 17, 31, 100, 257}) {
    for (int64_t tokens : {0, 1, 50}) {
      const auto table = SampleFloats(11 * width, 1);
      const auto ids = SampleInts(tokens, 2, 0, 11);
      std::vector<float> expected;
      for (int32_t id : ids) {
        expected.insert(expected.end(), table.begin() + id * width,
                        table.begin() + (id + 1) * width);
      }
      const Tensor y = NewOutput(DType::kF32, {tokens, width});
      Embedding({.table_VD = Upload(table, {11, width}).view(),
                 .ids_T = Upload(ids, {tokens}).view(),
                 .y_TD = y.view()},
                ctx());
      EXPECT_TRUE(AllSameBits(Download<float>(y), expected)) << tokens << " x " << width;
    }
  }
}

TEST_P(EmbeddingTest, BackwardAddsInTheOrderOfTokens) {
  OnEachInstructionSet([&] {
    for (int64_t width : {1, 15, 16, 17, 31, 100, 257}) {
      for (int64_t tokens : {0, 1, 50}) {  // 50 tokens, 11 rows: every row meets others
        const auto ids = SampleInts(tokens, 3, 0, 11);
        const auto dy = SampleFloats(tokens * width, 4);
        std::vector<float> expected = SampleFloats(11 * width, 5);
        const Tensor dtable = Upload(expected, {11, width});
        for (int64_t i = 0; i < tokens * width; ++i) {
          expected[ids[i / width] * width + i % width] += dy[i];
        }
        EmbeddingBackward({.ids_T = Upload(ids, {tokens}).view(),
                           .dy_TD = Upload(dy, {tokens, width}).view(),
                           .dtable_VD = dtable.view()},
                          ctx());
        EXPECT_TRUE(AllSameBits(Download<float>(dtable), expected)) << tokens << " x " << width;
      }
    }
  });
}

TEST_P(EmbeddingTest, ThreadsDoNotChangeBits) {
  const int64_t tokens = 1000, width = 257;
  const Tensor ids = Upload(SampleInts(tokens, 6, 0, 11), {tokens});
  const Tensor dy = Upload(SampleFloats(tokens * width, 7), {tokens, width});
  const auto start = SampleFloats(11 * width, 8);
  ExpectSameBitsOnAnyTeam([&] {
    const Tensor dtable = Upload(start, {11, width});
    EmbeddingBackward({.ids_T = ids.view(), .dy_TD = dy.view(), .dtable_VD = dtable.view()}, ctx());
    return Download<float>(dtable);
  });
}

TEST_P(EmbeddingTest, IdOutOfRangeIsFatal) {
  const Tensor table = NewOutput(DType::kF32, {3, 4}), y = NewOutput(DType::kF32, {2, 4});
  for (int32_t bad : {-1, 3}) {
    const Tensor ids = Upload<int32_t>({0, bad}, {2});
    EXPECT_DEATH(
        {
          Embedding({.table_VD = table.view(), .ids_T = ids.view(), .y_TD = y.view()}, ctx());
          CHECK_OK(stream().Synchronize());
        },
        "ids.1. is -?[13] of a table of 3");
    EXPECT_DEATH(
        {
          EmbeddingBackward({.ids_T = ids.view(), .dy_TD = y.view(), .dtable_VD = table.view()},
                            ctx());
          CHECK_OK(stream().Synchronize());
        },
        "ids.1. is -?[13] of a table of 3");
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, EmbeddingTest, ::testing::ValuesIn(testing::TestedDevices()),
                         testing::DeviceTestName);

}  // namespace
}  // namespace plinth
