#include "plinth/hardware/device/allocator.h"

#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/hardware/device/cpu/cpu_device.h"
#include "plinth/hardware/device/tensor.h"

namespace plinth {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::HasSubstr;

TEST(CachingAllocator, WastesAtMostAnEighth) {
  for (int64_t bytes : {0LL, 1LL, 511LL, 512LL, 513LL, 100000LL, 1LL << 30, (1LL << 30) + 1}) {
    const int64_t block = CachingAllocator::BlockBytes(bytes);
    EXPECT_GE(block, bytes);
    EXPECT_LE(block, std::max<int64_t>(bytes + 512, bytes + bytes / 8));
  }
}

TEST(CachingAllocator, ReusesBlocksAndTracksThePeak) {
  auto device = CreateCpuDevice();
  CachingAllocator allocator(device.get());
  ASSERT_OK_AND_ASSIGN(void* first, allocator.Allocate(1000));
  allocator.Free(first, 1000);
  ASSERT_OK_AND_ASSIGN(void* second, allocator.Allocate(1024));
  EXPECT_EQ(first, second);
  EXPECT_EQ(allocator.stats().reserved_bytes, 1024);
  EXPECT_EQ(allocator.stats().peak_bytes, 1024);
  allocator.Free(second, 1024);
  EXPECT_EQ(allocator.stats().live_bytes, 0);
}

TEST(CachingAllocator, LimitIsAnErrorWithNumbers) {
  auto device = CreateCpuDevice();
  CachingAllocator allocator(device.get(), 4096);
  ASSERT_OK_AND_ASSIGN(void* data, allocator.Allocate(2048));
  EXPECT_THAT(allocator.Allocate(4096), StatusIs(absl::StatusCode::kResourceExhausted,
                                                 HasSubstr("wanted 4096 bytes, but 2048")));
  allocator.Free(data, 2048);
  // The cached block makes room.
  ASSERT_OK_AND_ASSIGN(data, allocator.Allocate(4096));
  allocator.Free(data, 4096);
}

TEST(Tensor, SharesItsBlockUntilTheLastHandle) {
  auto device = CreateCpuDevice();
  CachingAllocator allocator(device.get());
  Tensor rows;
  {
    const Tensor whole = Tensor::New(allocator, DType::kF32, {4, 256});
    const Tensor copy = whole;
    EXPECT_EQ(copy.id(), whole.id());
    rows = whole.Rows(1, 2);
    EXPECT_NE(rows.id(), whole.id());
  }
  EXPECT_EQ(allocator.stats().live_bytes, 4096);
  rows = Tensor();
  EXPECT_EQ(allocator.stats().live_bytes, 0);
}

}  // namespace
}  // namespace plinth
