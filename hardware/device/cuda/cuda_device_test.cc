// Runs in every build: what CreateCudaDevice answers says which world this is.
#include "plinth/hardware/device/cuda/cuda_device.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/hardware/device/tensor.h"
#include "plinth/hardware/kernels/matmul/matmul.h"
#include "plinth/hardware/kernels/norm/norm.h"

namespace plinth {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

bool Required() {
  const char* required = std::getenv("PLINTH_REQUIRE_DEVICE");
  return required != nullptr && std::strstr(required, "cuda") != nullptr;
}

TEST(CudaDevice, SaysWhyThereIsNone) {
  const auto device = CreateCudaDevice(0);
  if (device.ok()) {
    EXPECT_THAT(CreateCudaDevice(1000), testing::StatusIs(absl::StatusCode::kUnavailable,
                                                          HasSubstr("no CUDA device 1000")));
    return;
  }
  ASSERT_FALSE(Required()) << device.status();
  EXPECT_THAT(
      device,
      AnyOf(testing::StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("--config=cuda")),
            testing::StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no CUDA device: "))));
}

class OnCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    auto device = CreateCudaDevice(0);
    if (!device.ok() && !Required()) GTEST_SKIP() << device.status();
    ASSERT_OK(device);
    device_ = *std::move(device);
    allocator_ = std::make_unique<CachingAllocator>(device_.get());
    stream_ = device_->CreateStream();
    ctx_ = {stream_.get(), nullptr, allocator_.get()};
  }
  Tensor Upload(const std::vector<float>& values, const Shape& shape) {
    Tensor tensor = Tensor::New(*allocator_, DType::kF32, shape);
    stream_->CopyIn(tensor.view().data, values.data(), tensor.view().bytes());
    return tensor;
  }
  std::vector<float> Download(const Tensor& tensor) {
    std::vector<float> values(static_cast<size_t>(tensor.elements()));
    stream_->CopyOut(values.data(), tensor.view().data, tensor.view().bytes());
    EXPECT_OK(stream_->Synchronize());
    return values;
  }
  // Small integers: sums are exact in f32, whatever their order.
  static std::vector<float> Integers(int64_t count, int64_t salt) {
    std::vector<float> values(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      values[i] = static_cast<float>((i * 7 + salt * 13) % 11 - 5);
    }
    return values;
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<CachingAllocator> allocator_;
  std::unique_ptr<Stream> stream_;
  KernelContext ctx_;
};

TEST_F(OnCuda, MatmulIsExactOnIntegers) {
  constexpr int64_t M = 33, N = 17, K = 65;
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const bool accumulate : {false, true}) {
        const std::vector<float> a = Integers(M * K, 1), b = Integers(K * N, 2),
                                 c = Integers(M * N, 3);
        const Tensor dc = Upload(c, {M, N});
        MatmulArgs args;
        const Tensor da = Upload(a, transpose_a ? Shape{K, M} : Shape{M, K});
        const Tensor db = Upload(b, transpose_b ? Shape{N, K} : Shape{K, N});
        args.a = da.view();
        args.b = db.view();
        args.c_MN = dc.view();
        args.transpose_a = transpose_a;
        args.transpose_b = transpose_b;
        args.accumulate = accumulate;
        Matmul(args, ctx_);
        const std::vector<float> got = Download(dc);
        for (int64_t m = 0; m < M; ++m) {
          for (int64_t n = 0; n < N; ++n) {
            double sum = accumulate ? c[m * N + n] : 0;
            for (int64_t k = 0; k < K; ++k) {
              sum += double{transpose_a ? a[k * M + m] : a[m * K + k]} *
                     (transpose_b ? b[n * K + k] : b[k * N + n]);
            }
            ASSERT_EQ(got[m * N + n], sum) << m << "," << n;
          }
        }
      }
    }
  }
}

TEST_F(OnCuda, RmsNormMatchesTheFormula) {
  constexpr int64_t T = 5, D = 771;
  const std::vector<float> x = Integers(T * D, 1), gain = Integers(D, 2);
  const Tensor dx = Upload(x, {T, D}), dgain = Upload(gain, {D});
  const Tensor y = Tensor::New(*allocator_, DType::kF32, {T, D});
  RmsNormArgs args;
  args.x_TD = dx.view();
  args.gain_D = dgain.view();
  args.y_TD = y.view();
  args.eps = 1e-5f;
  RmsNorm(args, ctx_);
  const std::vector<float> got = Download(y);
  for (int64_t t = 0; t < T; ++t) {
    double squares = 0;
    for (int64_t d = 0; d < D; ++d) squares += double{x[t * D + d]} * x[t * D + d];
    const double rstd = 1 / std::sqrt(squares / D + 1e-5);
    // The sum of integers is exact; rsqrt and two products round: 4 units of 2^-24, relative.
    for (int64_t d = 0; d < D; ++d) {
      const double want = x[t * D + d] * rstd * gain[d];
      ASSERT_NEAR(got[t * D + d], want, std::abs(want) * 4 * 0x1p-24);
    }
  }
}

}  // namespace
}  // namespace plinth
