#include "plinth/hardware/testing/device_fixture.h"

#include "hwy/targets.h"
#include "plinth/hardware/device/registry.h"

namespace plinth::testing {
namespace {

std::unique_ptr<Device> MakeDevice(DeviceKind kind) {
  auto device = CreateDevice(kind);
  CHECK_OK(device);
  return *std::move(device);
}

}  // namespace

DeviceTest::DeviceTest()
    : device_(MakeDevice(GetParam())), allocator_(device_.get()), stream_(device_->CreateStream()) {
  ctx_ = {.stream = stream_.get(), .scratch = &allocator_};
  SetThreadCount(2);
  // A plain fork has no stream threads: a death test would wait for work that never runs.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
}

DeviceTest::~DeviceTest() { EXPECT_TRUE(stream_->Synchronize().ok()); }

void DeviceTest::SetThreadCount(int count) {
  CHECK_OK(stream_->Synchronize());
  threads_ = std::make_unique<Threads>(count);
  ctx_.threads = threads_.get();
}

void DeviceTest::OnEachInstructionSet(const std::function<void()>& body) {
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    body();
    CHECK_OK(stream_->Synchronize());
  }
  hwy::SetSupportedTargetsForTest(0);
}

Tensor DeviceTest::UploadBytes(const void* data, DType dtype, const Shape& shape) {
  Tensor tensor = Tensor::New(allocator_, dtype, shape);
  stream_->CopyIn(tensor.view().data, data, tensor.view().bytes());
  return tensor;
}

Tensor DeviceTest::NewOutput(DType dtype, const Shape& shape) {
  const std::vector<uint8_t> bytes(static_cast<size_t>(shape.elements() * DTypeSize(dtype)), 0xff);
  return UploadBytes(bytes.data(), dtype, shape);
}

void DeviceTest::DownloadBytes(void* data, const TensorView& view) {
  CHECK(view.contiguous());
  stream_->CopyOut(data, view.data, view.bytes());
  CHECK_OK(stream_->Synchronize());
}

std::vector<DeviceKind> TestedDevices() { return {DeviceKind::kCpu, DeviceKind::kSim}; }

std::string DeviceTestName(const ::testing::TestParamInfo<DeviceKind>& info) {
  return std::string(DeviceKindName(info.param));
}

}  // namespace plinth::testing
