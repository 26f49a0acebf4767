#include "plinth/comm/bench/sweep/gpu_memory.h"

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "plinth/comm/transport/shared_library.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr unsigned kAttachGlobal = 1;  // any stream of any GPU

// The driver's functions; each returns 0 for success.
struct Driver {
  int (*Init)(unsigned flags);
  int (*DeviceGet)(int* device, int ordinal);
  int (*DevicePrimaryCtxRetain)(void** context, int device);
  int (*CtxSetCurrent)(void* context);
  int (*MemAllocManaged)(uint64_t* data, size_t bytes, unsigned flags);
  int (*MemFree)(uint64_t data);
};

absl::StatusOr<Driver> LoadDriver(const std::string& name) {
  SharedLibrary library;
  RETURN_IF_ERROR(library.Load(name));
  Driver driver{};
  library.Find("cuInit", &driver.Init);
  library.Find("cuDeviceGet", &driver.DeviceGet);
  library.Find("cuDevicePrimaryCtxRetain", &driver.DevicePrimaryCtxRetain);
  library.Find("cuCtxSetCurrent", &driver.CtxSetCurrent);
  library.Find("cuMemAllocManaged", &driver.MemAllocManaged);
  library.Find("cuMemFree_v2", &driver.MemFree);
  if (library.missing().empty()) return driver;
  return absl::UnavailableError(absl::StrCat(name, " has no ", library.missing()));
}

}  // namespace

absl::StatusOr<SharedMemory> AllocateGpuMemory(int device, int64_t bytes,
                                               const std::string& driver_name) {
  ASSIGN_OR_RETURN(const Driver driver, LoadDriver(driver_name));
  int handle = 0;
  void* context = nullptr;
  uint64_t data = 0;
  const char* what = "cuInit";
  int result = driver.Init(0);
  const auto next = [&](const char* name, const auto& call) {
    if (result != 0) return;
    what = name;
    result = call();
  };
  next("cuDeviceGet", [&] { return driver.DeviceGet(&handle, device); });
  // The context is the process's for good, as NCCL's is the same one.
  next("cuDevicePrimaryCtxRetain", [&] { return driver.DevicePrimaryCtxRetain(&context, handle); });
  next("cuCtxSetCurrent", [&] { return driver.CtxSetCurrent(context); });
  next("cuMemAllocManaged",
       [&] { return driver.MemAllocManaged(&data, static_cast<size_t>(bytes), kAttachGlobal); });
  if (result != 0) {
    return absl::UnavailableError(absl::StrCat("GPU ", device, ": ", what, " for ", bytes,
                                               " bytes failed with CUDA error ", result));
  }
  auto* memory = reinterpret_cast<std::byte*>(data);
  return SharedMemory(
      std::shared_ptr<std::byte>(memory, [driver, data](std::byte*) { driver.MemFree(data); }),
      bytes);
}

}  // namespace plinth::comm
