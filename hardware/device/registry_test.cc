#include "plinth/hardware/device/registry.h"

#include "plinth/hardware/base/status_matchers.h"

namespace plinth {
namespace {

using ::plinth::testing::IsOkAndHolds;
using ::plinth::testing::StatusIs;
using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST(Registry, NamesRoundTrip) {
  for (DeviceKind kind : {DeviceKind::kCpu, DeviceKind::kSim, DeviceKind::kCuda}) {
    EXPECT_THAT(ParseDeviceKind(DeviceKindName(kind)), IsOkAndHolds(kind));
  }
  EXPECT_THAT(ParseDeviceKind("tpu"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"tpu\", want cpu")));
}

TEST(Registry, MakesTheDevicesOfThisBinary) {
  for (DeviceKind kind : {DeviceKind::kCpu, DeviceKind::kSim}) {
    ASSERT_OK_AND_ASSIGN(auto device, CreateDevice(kind));
    EXPECT_EQ(device->kind(), kind);
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
