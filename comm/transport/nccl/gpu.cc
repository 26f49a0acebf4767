#include "plinth/comm/transport/nccl/gpu.h"

#include "absl/strings/str_cat.h"
#include "plinth/comm/transport/shared_library.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr int kSuccess = 0;
constexpr int kNotReady = 600;
constexpr unsigned kNonBlockingStream = 1;  // does not wait for the legacy default stream
constexpr int kAddressBytes = 32;

}  // namespace

absl::StatusOr<std::unique_ptr<GpuStream>> GpuStream::Create(int device,
                                                             const std::string& library_name) {
  SharedLibrary library;
  if (const absl::Status status = library.Load(library_name); !status.ok()) {
    return absl::UnavailableError(
        absl::StrCat("nccl: no NVIDIA driver: ", std::string(status.message())));
  }
  std::unique_ptr<GpuStream> gpu(new GpuStream);
  Driver& driver = gpu->driver_;
  library.Find("cuInit", &driver.Init);
  library.Find("cuDeviceGetCount", &driver.DeviceGetCount);
  library.Find("cuDeviceGet", &driver.DeviceGet);
  library.Find("cuDeviceGetPCIBusId", &driver.DeviceGetPCIBusId);
  library.Find("cuDevicePrimaryCtxRetain", &driver.DevicePrimaryCtxRetain);
  library.Find("cuDevicePrimaryCtxRelease_v2", &driver.DevicePrimaryCtxRelease);
  library.Find("cuCtxSetCurrent", &driver.CtxSetCurrent);
  library.Find("cuStreamCreate", &driver.StreamCreate);
  library.Find("cuStreamQuery", &driver.StreamQuery);
  library.Find("cuStreamDestroy_v2", &driver.StreamDestroy);
  library.Find("cuGetErrorName", &driver.GetErrorName);
  if (!library.missing().empty()) {
    return absl::UnavailableError(
        absl::StrCat("nccl: the driver ", library_name, " lacks ", library.missing()));
  }
  RETURN_IF_ERROR(gpu->Bind(device));
  return gpu;
}

absl::Status GpuStream::Bind(int ordinal) {
  int count = 0;
  RETURN_IF_ERROR(Result(driver_.Init(0), "start"));
  RETURN_IF_ERROR(Result(driver_.DeviceGetCount(&count), "count GPUs"));
  if (ordinal < 0 || ordinal >= count) {
    return absl::FailedPreconditionError(
        absl::StrCat("nccl: bound to GPU ", ordinal, ", of ", count, " that this process sees",
                     ordinal < 0 ? ": a group over NCCL needs CommOptions::device" : ""));
  }
  char address[kAddressBytes] = {};
  int device = -1;
  RETURN_IF_ERROR(Result(driver_.DeviceGet(&device, ordinal), "find the GPU"));
  RETURN_IF_ERROR(
      Result(driver_.DeviceGetPCIBusId(address, kAddressBytes, device), "find its address"));
  address_ = address;
  RETURN_IF_ERROR(Result(driver_.DevicePrimaryCtxRetain(&context_, device), "open the GPU"));
  device_ = device;
  RETURN_IF_ERROR(Use());
  return Result(driver_.StreamCreate(&stream_, kNonBlockingStream), "make a stream");
}

GpuStream::~GpuStream() {
  if (stream_ != nullptr && Use().ok()) driver_.StreamDestroy(stream_);
  if (device_ >= 0) driver_.DevicePrimaryCtxRelease(device_);
}

absl::Status GpuStream::Use() { return Result(driver_.CtxSetCurrent(context_), "use the GPU"); }

absl::StatusOr<bool> GpuStream::Done() {
  const int result = driver_.StreamQuery(stream_);
  if (result == kNotReady) return false;
  RETURN_IF_ERROR(Result(result, "run the operation"));
  return true;
}

absl::Status GpuStream::Result(int result, const char* what) const {
  if (result == kSuccess) return absl::OkStatus();
  const char* name = nullptr;
  if (driver_.GetErrorName(result, &name) != kSuccess || name == nullptr) name = "unknown error";
  return absl::UnavailableError(absl::StrCat("nccl: the driver cannot ", what, ": ", name));
}

}  // namespace plinth::comm
