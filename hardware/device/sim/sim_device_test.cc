#include "plinth/hardware/device/sim/sim_device.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>
#include <vector>

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kBytes = 1000 * sizeof(int32_t);

class SimDeviceTest : public ::testing::Test {
 protected:
  SimDeviceTest() {
    // A plain fork has no stream threads.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }

  int32_t* New(int64_t bytes = kBytes) {
    auto data = device_->Allocate(bytes);
    CHECK_OK(data);
    return static_cast<int32_t*>(*data);
  }

  std::unique_ptr<Device> device_ =
      CreateSimDevice({.launch_delay = std::chrono::microseconds(200)});
};

std::vector<int32_t> Counting() {
  std::vector<int32_t> values(1000);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

// Adds `amount` to each of the 1000 integers at `data`.
void AddOnDevice(Stream& stream, int32_t* data, int32_t amount) {
  stream.RunOnHost([data, amount](const AddressMap& map) {
    auto* values = static_cast<int32_t*>(map.ToHost(data));
    for (int i = 0; i < 1000; ++i) values[i] += amount;
  });
}

std::vector<int32_t> Read(Stream& stream, const int32_t* data) {
  std::vector<int32_t> values(1000);
  stream.CopyOut(values.data(), data, kBytes);
  CHECK_OK(stream.Synchronize());
  return values;
}

using SimDeviceDeathTest = SimDeviceTest;

TEST_F(SimDeviceDeathTest, HostCodeCannotTouchDeviceMemory) {
  int32_t* data = New();
  EXPECT_DEATH(*const_cast<volatile int32_t*>(data) = 1, "");
  EXPECT_DEATH({ [[maybe_unused]] const int32_t value = *const_cast<volatile int32_t*>(data); },
               "");
  device_->Free(data, kBytes);
}

TEST_F(SimDeviceDeathTest, UseAfterFreeIsFatal) {
  int32_t* data = New();
  device_->Free(data, kBytes);
  EXPECT_DEATH(
      {
        auto stream = device_->CreateStream();
        AddOnDevice(*stream, data, 1);
        CHECK_OK(stream->Synchronize());
      },
      "no live block");
  EXPECT_DEATH(
      {
        auto stream = device_->CreateStream();
        stream->FillZero(data, 4);
        CHECK_OK(stream->Synchronize());
      },
      "no live block");
  EXPECT_DEATH(device_->Free(data, kBytes), "no live block");
}

TEST_F(SimDeviceDeathTest, CopiesStayInsideTheirBlock) {
  int32_t* data = New();
  const std::vector<char> page(1 << 20);
  EXPECT_DEATH(
      {
        auto stream = device_->CreateStream();
        stream->CopyIn(data, page.data(), 1 << 20);
        CHECK_OK(stream->Synchronize());
      },
      "no live block of 1048576 more bytes");
  device_->Free(data, kBytes);
}

TEST_F(SimDeviceDeathTest, BlocksAndStreamsMayNotOutliveTheDevice) {
  EXPECT_DEATH(
      {
        New();
        device_.reset();
      },
      "1 blocks outlive the device");
  EXPECT_DEATH(
      {
        auto stream = device_->CreateStream();
        device_.reset();
      },
      "streams outlive the device");
}

TEST_F(SimDeviceTest, WorkRunsInOrder) {
  int32_t *data = New(), *copy = New();
  {
    auto stream = device_->CreateStream();
    std::vector<int32_t> values = Counting();
    stream->CopyIn(data, values.data(), kBytes);
    values.assign(1000, -1);  // the source may be reused at once
    for (int i = 0; i < 10; ++i) AddOnDevice(*stream, data, 1);
    stream->CopyWithin(copy, data, kBytes);
    stream->FillZero(data, kBytes);
    std::vector<int32_t> expected = Counting();
    for (int32_t& value : expected) value += 10;
    EXPECT_EQ(Read(*stream, copy), expected);
    EXPECT_EQ(Read(*stream, data), std::vector<int32_t>(1000, 0));
  }
  device_->Free(data, kBytes);
  device_->Free(copy, kBytes);
}

TEST_F(SimDeviceTest, ACopyOutIsNotThereBeforeItHasRun) {
  int32_t* data = New();
  {
    auto stream = device_->CreateStream();
    std::atomic<bool> go{false};
    stream->FillZero(data, kBytes);
    stream->RunOnHost([&go](const AddressMap&) {
      while (!go) std::this_thread::yield();
    });
    std::vector<int32_t> values(1000, 7);
    stream->CopyOut(values.data(), data, kBytes);
    EXPECT_EQ(values, std::vector<int32_t>(1000, -1));
    go = true;
    ASSERT_OK(stream->Synchronize());
    EXPECT_EQ(values, std::vector<int32_t>(1000, 0));
  }
  device_->Free(data, kBytes);
}

TEST_F(SimDeviceTest, EventsOrderStreams) {
  int32_t* data = New();
  for (int round = 0; round < 20; ++round) {
    auto writer = device_->CreateStream(), reader = device_->CreateStream();
    std::atomic<bool> go{false};
    writer->RunOnHost([&go](const AddressMap&) {
      while (!go) std::this_thread::yield();
    });
    const std::vector<int32_t> values = Counting();
    writer->CopyIn(data, values.data(), kBytes);
    const std::shared_ptr<Event> written = writer->Record();
    EXPECT_FALSE(written->done());
    reader->Wait(written);
    std::vector<int32_t> read(1000);
    reader->CopyOut(read.data(), data, kBytes);
    go = true;
    ASSERT_OK(reader->Synchronize());
    EXPECT_TRUE(written->done());
    EXPECT_EQ(read, values);
  }
  device_->Free(data, kBytes);
}

TEST_F(SimDeviceTest, DestroyingAStreamFinishesItsWork) {
  int32_t* data = New();
  std::vector<int32_t> read(1000);
  {
    auto stream = device_->CreateStream();
    stream->FillZero(data, kBytes);
    AddOnDevice(*stream, data, 5);
    stream->CopyOut(read.data(), data, kBytes);
  }
  EXPECT_EQ(read, std::vector<int32_t>(1000, 5));
  device_->Free(data, kBytes);
}

TEST_F(SimDeviceTest, KernelsOfAllStreamsRunOneAtATime) {
  std::atomic<int> running{0}, most{0};
  {
    auto one = device_->CreateStream(), two = device_->CreateStream();
    for (int i = 0; i < 10; ++i) {
      for (Stream* stream : {one.get(), two.get()}) {
        stream->RunOnHost([&](const AddressMap&) {
          most = std::max<int>(most, ++running);
          std::this_thread::sleep_for(std::chrono::microseconds(100));
          --running;
        });
      }
    }
  }
  EXPECT_EQ(most, 1);
}

TEST_F(SimDeviceTest, FreshMemoryIsNan) {
  // The second round gets the addresses of the first, which then held zeros.
  for (int round = 0; round < 2; ++round) {
    auto* data = reinterpret_cast<float*>(New());
    auto stream = device_->CreateStream();
    bool all_nan = true;
    stream->RunOnHost([&all_nan, data](const AddressMap& map) {
      auto* values = static_cast<float*>(map.ToHost(data));
      for (int i = 0; i < 1000; ++i) all_nan = all_nan && std::isnan(values[i]);
    });
    stream->FillZero(data, kBytes);
    ASSERT_OK(stream->Synchronize());
    EXPECT_TRUE(all_nan);
    device_->Free(data, kBytes);
  }
}

TEST_F(SimDeviceTest, EmptyBlocksAreDistinctAndEndsAreAddresses) {
  int32_t *one = New(0), *two = New(0), *data = New(4096);
  EXPECT_NE(one, nullptr);
  EXPECT_NE(one, two);
  {
    auto stream = device_->CreateStream();
    // The view of no rows at the end of a tensor has this address.
    stream->RunOnHost([data](const AddressMap& map) {
      EXPECT_NE(map.ToHost(data + 1024), nullptr);
      EXPECT_EQ(map.ToHost(nullptr), nullptr);
    });
    stream->CopyIn(one, nullptr, 0);
    ASSERT_OK(stream->Synchronize());
  }
  device_->Free(one, 0);
  device_->Free(two, 0);
  device_->Free(data, 4096);
}

TEST(SimDevice, OutOfMemoryIsAnErrorWithNumbers) {
  auto device = CreateSimDevice({.memory_bytes = 1 << 20});
  EXPECT_THAT(device->Allocate(1 << 20), StatusIs(absl::StatusCode::kResourceExhausted,
                                                  AllOf(HasSubstr("wanted 1048576 bytes"),
                                                        HasSubstr("free range is 1044480 bytes"))));
  // All of it can be used, given back in any order, and used in one piece again.
  std::vector<void*> blocks;
  while (true) {
    auto block = device->Allocate(10000);
    if (!block.ok()) break;
    blocks.push_back(*block);
  }
  EXPECT_EQ(blocks.size(), (1u << 20) / 16384);  // 3 pages and a gap each
  for (size_t i = 0; i < blocks.size(); i += 2) device->Free(blocks[i], 10000);
  for (size_t i = 1; i < blocks.size(); i += 2) device->Free(blocks[i], 10000);
  ASSERT_OK_AND_ASSIGN(void* whole, device->Allocate(1044480));
  device->Free(whole, 1044480);
}

TEST(SimDevice, AFailedLaunchIsReportedOnceAndSkipsWhatFollows) {
  auto device = CreateSimDevice({.failing_launch = 2});
  ASSERT_OK_AND_ASSIGN(void* block, device->Allocate(kBytes));
  auto* data = static_cast<int32_t*>(block);
  auto stream = device->CreateStream();
  stream->FillZero(data, kBytes);
  for (int i = 0; i < 4; ++i) AddOnDevice(*stream, data, 1);
  const std::shared_ptr<Event> event = stream->Record();
  EXPECT_THAT(stream->Synchronize(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("kernel launch 2 failed")));
  EXPECT_TRUE(event->done()) << "whoever waits must not wait for ever";
  ASSERT_OK(stream->Synchronize());
  EXPECT_EQ(Read(*stream, data), std::vector<int32_t>(1000, 1));
  stream.reset();
  device->Free(data, kBytes);
}

TEST(SimDevice, CopiesCanBeSlow) {
  auto device = CreateSimDevice({.copy_bytes_per_second = 1 << 20});
  ASSERT_OK_AND_ASSIGN(void* data, device->Allocate(1 << 14));
  auto stream = device->CreateStream();
  const std::vector<char> bytes(1 << 14);
  const auto start = std::chrono::steady_clock::now();
  stream->CopyIn(data, bytes.data(), 1 << 14);
  const auto queued = std::chrono::steady_clock::now();
  ASSERT_OK(stream->Synchronize());
  const auto done = std::chrono::steady_clock::now();
  EXPECT_GE(done - start, std::chrono::microseconds(15625));  // 2^14 / 2^20 s
  EXPECT_LT(queued - start, done - start);
  stream.reset();
  device->Free(data, 1 << 14);
}

}  // namespace
}  // namespace plinth
