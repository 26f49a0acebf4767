// DeviceTest: what a kernel test needs around it, on each device whose kernels run here.
//
//   using NormTest = plinth::testing::DeviceTest;
//   TEST_P(NormTest, Copies) {
//     Tensor x = Upload<float>(values, {3, 5});
//     Tensor y = NewOutput(DType::kF32, {3, 5});
//     RmsNorm({.x_TD = x.view(), ...}, ctx());
//     EXPECT_THAT(Download<float>(y), ...);
//   }
//   INSTANTIATE_TEST_SUITE_P(Devices, NormTest, ::testing::ValuesIn(TestedDevices()),
//                            DeviceTestName);
#ifndef PLINTH_HARDWARE_TESTING_DEVICE_FIXTURE_H_
#define PLINTH_HARDWARE_TESTING_DEVICE_FIXTURE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/device/allocator.h"
#include "plinth/hardware/device/device.h"
#include "plinth/hardware/device/tensor.h"
#include "plinth/hardware/kernels/kernel.h"
#include "plinth/hardware/tensor/tensor_view.h"
#include "plinth/hardware/testing/compare.h"
#include "plinth/hardware/threading/threads.h"

namespace plinth::testing {

// One device, one stream, one allocator and a team of two threads for each test.
class DeviceTest : public ::testing::TestWithParam<DeviceKind> {
 protected:
  DeviceTest();
  // Waits for the stream, so that temporaries of the test may go.
  ~DeviceTest() override;

  Device& device() { return *device_; }
  Stream& stream() { return *stream_; }
  CachingAllocator& allocator() { return allocator_; }
  Threads& threads() { return *threads_; }
  KernelContext& ctx() { return ctx_; }
  // Replaces the team, to compare results between thread counts.
  void SetThreadCount(int count);

  // Calls run(), which returns a vector of results, with teams of 1, 2 and 3 threads and
  // expects the same bits from each.
  template <typename F>
  void ExpectSameBitsOnAnyTeam(F run) {
    SetThreadCount(1);
    const auto alone = run();
    for (int count : {2, 3}) {
      SetThreadCount(count);
      EXPECT_TRUE(AllSameBits(run(), alone)) << "with " << count << " threads";
    }
  }

  // Calls body() with kernels compiled for each instruction set that this machine has, since
  // other machines have only the lesser ones. Expectations inside are traced by its name.
  void OnEachInstructionSet(const std::function<void()>& body);

  // A contiguous tensor that holds `values`. T is the C++ type of its dtype.
  template <typename T>
  Tensor Upload(std::span<const T> values, const Shape& shape) {
    CHECK_EQ(static_cast<int64_t>(values.size()), shape.elements());
    return UploadBytes(values.data(), DTypeOf<T>(), shape);
  }
  template <typename T>
  Tensor Upload(const std::vector<T>& values, const Shape& shape) {
    return Upload(std::span<const T>(values), shape);
  }

  // A tensor whose bytes are all 0xff: NaN in every float format, so that an element the
  // kernel forgets to write is seen.
  Tensor NewOutput(DType dtype, const Shape& shape);

  // The elements of a contiguous view, after all work queued so far. T as in Upload.
  template <typename T>
  std::vector<T> Download(const TensorView& view) {
    CHECK_EQ(static_cast<int64_t>(sizeof(T)), DTypeSize(view.dtype));
    std::vector<T> values(static_cast<size_t>(view.elements()));
    DownloadBytes(values.data(), view);
    return values;
  }
  template <typename T>
  std::vector<T> Download(const Tensor& tensor) {
    return Download<T>(tensor.view());
  }

 private:
  // bf16 travels as its bits.
  template <typename T>
  static DType DTypeOf() {
    if constexpr (std::is_same_v<T, float>) return DType::kF32;
    if constexpr (std::is_same_v<T, double>) return DType::kF64;
    if constexpr (std::is_same_v<T, int32_t>) return DType::kI32;
    if constexpr (std::is_same_v<T, int64_t>) return DType::kI64;
    if constexpr (std::is_same_v<T, uint16_t>) return DType::kBf16;
  }
  Tensor UploadBytes(const void* data, DType dtype, const Shape& shape);
  void DownloadBytes(void* data, const TensorView& view);

  // In order of construction: each uses those above it.
  std::unique_ptr<Device> device_;
  CachingAllocator allocator_;
  std::unique_ptr<Threads> threads_;
  std::unique_ptr<Stream> stream_;
  KernelContext ctx_;
};

// The devices whose kernels run on this machine.
std::vector<DeviceKind> TestedDevices();
// "cpu": the suffix of a test's name.
std::string DeviceTestName(const ::testing::TestParamInfo<DeviceKind>& info);

}  // namespace plinth::testing

#endif  // PLINTH_HARDWARE_TESTING_DEVICE_FIXTURE_H_
