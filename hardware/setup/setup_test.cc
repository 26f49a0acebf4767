#include "plinth/hardware/setup/setup.h"

#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth {
namespace {

using ::plinth::testing::IsOkAndHolds;

TEST(Setup, OpensTheConfiguredDevice) {
  config::HardwareConfig config;
  ASSERT_OK_AND_ASSIGN(auto device, OpenDevice(config));
  EXPECT_EQ(device->kind(), DeviceKind::kCpu);
  config.set_device(config::SIM);
  ASSERT_OK_AND_ASSIGN(device, OpenDevice(config));
  EXPECT_EQ(device->kind(), DeviceKind::kSim);
}

TEST(Setup, SharesCpusBetweenRanks) {
  config::HardwareConfig config;
  ASSERT_OK_AND_ASSIGN(const int alone, KernelThreads(config, 1));
  EXPECT_GE(alone, 1);
  EXPECT_THAT(KernelThreads(config, alone), IsOkAndHolds(1));
  EXPECT_THAT(KernelThreads(config, 1000 * alone), IsOkAndHolds(1));
  config.set_threads(7);
  EXPECT_THAT(KernelThreads(config, 2), IsOkAndHolds(7));
}

}  // namespace
}  // namespace plinth
