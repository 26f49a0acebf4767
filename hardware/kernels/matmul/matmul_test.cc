#include "plinth/hardware/kernels/matmul/matmul.h"

#include <array>
#include <cmath>

#include "plinth/hardware/kernels/matmul/reference.h"
#include "plinth/hardware/testing/compare.h"
#include "plinth/hardware/testing/device_fixture.h"
#include "plinth/hardware/testing/sample.h"

namespace plinth {
namespace {

using testing::SampleFloats;
using MatmulTest = testing::DeviceTest;

// Each of K fused steps rounds once, plus the last addition; |terms| are at most 1.
Tolerance ToleranceFor(int64_t K) { return {.eps = 0x1p-24 * (K + 2), .abs = K + 1.0}; }

// The first `columns` of each row.
TensorView Strided(const Tensor& tensor, int64_t columns) {
  TensorView view = tensor.view();
  view.shape = Shape{view.dim(0), columns};
  return view;
}

TEST_P(MatmulTest, AgreesWithReference) {
  int seed = 0;
  for (const auto& [M, N, K] : {std::array<int64_t, 3>{1, 1, 1},
                                {2, 3, 5},
                                {1, 17, 33},
                                {16, 48, 64},
                                {17, 1, 100},
                                {65, 63, 31},
                                {0, 4, 3},
                                {4, 0, 3},
                                {4, 3, 0}}) {
    for (int flags = 0; flags < 16; ++flags) {
      const bool transpose_a = flags & 1, transpose_b = flags & 2, accumulate = flags & 4;
      const int64_t gap = flags & 8 ? 3 : 0;
      const Shape a_shape = transpose_a ? Shape{K, M + gap} : Shape{M, K + gap};
      const Shape b_shape = transpose_b ? Shape{N, K + gap} : Shape{K, N + gap};
      const Shape c_shape{M, N + gap};
      auto a = SampleFloats(a_shape.elements(), ++seed),
           b = SampleFloats(b_shape.elements(), ++seed);
      auto expected = accumulate ? SampleFloats(c_shape.elements(), ++seed)
                                 : std::vector<float>(c_shape.elements(), NAN);
      const Tensor a_device = Upload(a, a_shape), b_device = Upload(b, b_shape);
      const Tensor c_device = Upload(expected, c_shape);
      MatmulArgs args{.a = Strided(a_device, a_shape.dim(1) - gap),
                      .b = Strided(b_device, b_shape.dim(1) - gap),
                      .c_MN = Strided(c_device, N),
                      .transpose_a = transpose_a,
                      .transpose_b = transpose_b,
                      .accumulate = accumulate};
      Matmul(args, ctx());
      args.a.data = a.data(), args.b.data = b.data(), args.c_MN.data = expected.data();
      reference::Matmul(args);

      auto actual = Download<float>(c_device);
      for (int64_t m = 0; m < M; ++m) {  // what lies between rows is not written
        for (int64_t n = N; n < N + gap; ++n) {
          const int64_t i = m * (N + gap) + n;
          EXPECT_EQ(std::isnan(actual[i]), !accumulate);
          actual[i] = expected[i] = 0;
        }
      }
      EXPECT_TRUE(AllClose(actual, expected, ToleranceFor(K)))
          << "M " << M << " N " << N << " K " << K << " flags " << flags;
    }
  }
}

TEST_P(MatmulTest, UsesTheContextsTeam) {
  const Tensor a = Upload(SampleFloats(200 * 200, 1), {200, 200});
  const MatmulArgs args{.a = a.view(), .b = a.view()};
  for (int count : {1, 2, 3}) {
    SetThreadCount(count);
    const Tensor c = NewOutput(DType::kF32, {200, 200});
    MatmulArgs run = args;
    run.c_MN = c.view();
    Matmul(run, ctx());
    const auto values = Download<float>(c);
    std::vector<float> a_host = SampleFloats(200 * 200, 1), c_host(200 * 200);
    run.a.data = run.b.data = a_host.data(), run.c_MN.data = c_host.data();
    reference::Matmul(run);
    EXPECT_TRUE(AllClose(values, c_host, ToleranceFor(200))) << count << " threads";
  }
}

TEST_P(MatmulTest, NamesTheWrongDimension) {
  const Tensor a = NewOutput(DType::kF32, {2, 3}), b = NewOutput(DType::kF32, {4, 5});
  const MatmulArgs args{.a = a.view(), .b = b.view(), .c_MN = a.view()};
  EXPECT_DEATH(Matmul(args, ctx()), "4 vs. 3.*in matmul: dim K of b, which has shape \\[4,5\\]");
}

INSTANTIATE_TEST_SUITE_P(Devices, MatmulTest, ::testing::ValuesIn(testing::TestedDevices()),
                         testing::DeviceTestName);

}  // namespace
}  // namespace plinth
