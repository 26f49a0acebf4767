#include "plinth/hardware/device/registry.h"

#include "plinth/hardware/base/status_matchers.h"

namespace plinth {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST(Registry, MakesTheDevicesOfThisBinary) {
  for (DeviceKind kind : {DeviceKind::kCpu, DeviceKind::kSim}) {
    ASSERT_OK_AND_ASSIGN(auto device, CreateDevice(kind));
    EXPECT_EQ(device->kind(), kind);
    EXPECT_EQ(device->name(), DeviceKindName(kind));
  }
  const auto cuda = CreateDevice(DeviceKind::kCuda);
  if (cuda.ok()) {
    EXPECT_EQ((*cuda)->kind(), DeviceKind::kCuda);
  } else {
    EXPECT_THAT(cuda, AnyOf(StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("--config=cuda")),
                            StatusIs(absl::StatusCode::kUnavailable, HasSubstr("CUDA"))));
  }
}

}  // namespace
}  // namespace plinth
