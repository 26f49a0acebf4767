#include "plinth/hardware/device/cuda/cuda_device.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuda_runtime_api.h"
#include "plinth/hardware/base/check.h"

namespace plinth {
namespace {

std::string Say(cudaError_t error) {
  return absl::StrCat(cudaGetErrorString(error), " (", cudaGetErrorName(error), ")");
}

class CudaEvent : public Event {
 public:
  explicit CudaEvent(cudaEvent_t event) : event_(event) {}
  ~CudaEvent() override { cudaEventDestroy(event_); }
  bool done() const override { return cudaEventQuery(event_) == cudaSuccess; }
  cudaEvent_t native() const { return event_; }

 private:
  cudaEvent_t event_;
};

// Errors of queued work are kept and returned by the next Synchronize.
class CudaStream : public Stream {
 public:
  CudaStream(Device* device, int ordinal) : device_(device), ordinal_(ordinal) {
    Use();
    Note(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "create a stream");
  }
  ~CudaStream() override {
    Use();
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }

  Device& device() override { return *device_; }
  cudaStream_t native() {
    Use();
    return stream_;
  }

  // From pageable memory the call returns once the source has been staged; to pageable
  // memory it may wait for the copy. Both are within the contract.
  void CopyIn(void* dst, const void* src, int64_t bytes) override {
    Copy(dst, src, bytes, cudaMemcpyHostToDevice, "copy to the device");
  }
  void CopyOut(void* dst, const void* src, int64_t bytes) override {
    Copy(dst, src, bytes, cudaMemcpyDeviceToHost, "copy to the host");
  }
  void CopyWithin(void* dst, const void* src, int64_t bytes) override {
    Copy(dst, src, bytes, cudaMemcpyDeviceToDevice, "copy within the device");
  }
  void FillZero(void* dst, int64_t bytes) override {
    Use();
    if (bytes > 0) Note(cudaMemsetAsync(dst, 0, static_cast<size_t>(bytes), stream_), "fill");
  }

  void RunOnHost(std::function<void(const AddressMap&)>) override {
    CHECK(false) << "a host kernel was queued on " << device_->name()
                 << ": this kernel has no CUDA variant";
  }

  std::shared_ptr<Event> Record() override {
    Use();
    cudaEvent_t event = nullptr;
    Note(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "create an event");
    Note(cudaEventRecord(event, stream_), "record an event");
    return std::make_shared<CudaEvent>(event);
  }
  void Wait(std::shared_ptr<Event> event) override {
    Use();
    const auto* cuda_event = dynamic_cast<const CudaEvent*>(event.get());
    CHECK(cuda_event != nullptr) << "an event of another kind of device";
    Note(cudaStreamWaitEvent(stream_, cuda_event->native(), 0), "wait for an event");
  }

  absl::Status Synchronize() override {
    Use();
    Note(cudaStreamSynchronize(stream_), "run queued work");
    return std::exchange(status_, absl::OkStatus());
  }

 private:
  // The current device is a property of the calling thread.
  void Use() { Note(cudaSetDevice(ordinal_), "select"); }
  void Copy(void* dst, const void* src, int64_t bytes, cudaMemcpyKind kind, const char* what) {
    Use();
    if (bytes > 0) Note(cudaMemcpyAsync(dst, src, static_cast<size_t>(bytes), kind, stream_), what);
  }
  void Note(cudaError_t error, const char* what) {
    if (error == cudaSuccess || !status_.ok()) return;
    status_ =
        absl::InternalError(absl::StrCat(device_->name(), ": cannot ", what, ": ", Say(error)));
  }

  Device* const device_;
  const int ordinal_;
  cudaStream_t stream_ = nullptr;
  absl::Status status_;
};

class CudaDevice : public Device {
 public:
  explicit CudaDevice(int ordinal) : ordinal_(ordinal) {}

  DeviceKind kind() const override { return DeviceKind::kCuda; }
  std::string name() const override { return absl::StrCat("cuda:", ordinal_); }
  bool host_accessible() const override { return false; }

  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    void* data = nullptr;
    cudaError_t error = cudaSetDevice(ordinal_);
    // cudaMalloc aligns to 256 bytes or more, and gives null for 0 bytes.
    if (error == cudaSuccess) {
      error = cudaMalloc(&data, static_cast<size_t>(std::max<int64_t>(bytes, 1)));
    }
    if (error == cudaSuccess) return data;
    cudaGetLastError();  // an allocation that failed is not an error of later work
    size_t free_bytes = 0, total_bytes = 0;
    cudaMemGetInfo(&free_bytes, &total_bytes);
    return absl::ResourceExhaustedError(absl::StrCat(name(), ": wanted ", bytes, " bytes, ",
                                                     free_bytes, " of ", total_bytes,
                                                     " are free: ", Say(error)));
  }
  void Free(void* data, int64_t) override {
    cudaSetDevice(ordinal_);
    cudaFree(data);
  }
  std::unique_ptr<Stream> CreateStream() override {
    return std::make_unique<CudaStream>(this, ordinal_);
  }

 private:
  const int ordinal_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> CreateCudaDevice(int ordinal) {
  int count = 0;  // not written when there is no driver
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    return absl::UnavailableError(absl::StrCat("no CUDA device: ", Say(error)));
  }
  if (ordinal < 0 || ordinal >= count) {
    return absl::UnavailableError(
        absl::StrCat("no CUDA device ", ordinal, ": ", count, " are visible"));
  }
  return std::make_unique<CudaDevice>(ordinal);
}

void* CudaNativeStream(Stream& stream) {
  auto* cuda_stream = dynamic_cast<CudaStream*>(&stream);
  CHECK(cuda_stream != nullptr) << "a stream of " << stream.device().name()
                                << " is not a CUDA stream";
  return cuda_stream->native();
}

}  // namespace plinth
