// The GPU that a rank is bound to, through the driver's own library, loaded when asked for.
#ifndef PLINTH_COMM_TRANSPORT_NCCL_GPU_H_
#define PLINTH_COMM_TRANSPORT_NCCL_GPU_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace plinth::comm {

// A GPU and a stream on it. Used by one thread at a time, not always the same one.
class GpuStream {
 public:
  // kFailedPrecondition: `device` is not among those that CUDA_VISIBLE_DEVICES leaves; says how
  // many those are. kUnavailable: no driver, or what it said.
  static absl::StatusOr<std::unique_ptr<GpuStream>> Create(int device, const std::string& library);
  // Nothing may be queued any more.
  ~GpuStream();

  // "0000:3b:00.0".
  const std::string& address() const { return address_; }
  void* stream() const { return stream_; }

  // The GPU is a property of the calling thread: called by each before NCCL is.
  absl::Status Use();
  // True once all that was queued is through; the GPU's error when it failed (kUnavailable).
  absl::StatusOr<bool> Done();

 private:
  // The driver's functions; each returns 0 for success.
  struct Driver {
    int (*Init)(unsigned flags);
    int (*DeviceGetCount)(int* count);
    int (*DeviceGet)(int* device, int ordinal);
    int (*DeviceGetPCIBusId)(char* text, int bytes, int device);
    int (*DevicePrimaryCtxRetain)(void** context, int device);
    int (*DevicePrimaryCtxRelease)(int device);
    int (*CtxSetCurrent)(void* context);
    int (*StreamCreate)(void** stream, unsigned flags);
    int (*StreamQuery)(void* stream);
    int (*StreamDestroy)(void* stream);
    int (*GetErrorName)(int result, const char** name);
  };
  GpuStream() = default;
  absl::Status Bind(int ordinal);
  absl::Status Result(int result, const char* what) const;

  Driver driver_{};
  int device_ = -1;  // the driver's handle
  std::string address_;
  void* context_ = nullptr;
  void* stream_ = nullptr;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_NCCL_GPU_H_
