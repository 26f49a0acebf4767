#include "plinth/hardware/device/cpu/cpu_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace plinth {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kHugePage = int64_t{2} << 20;

class IdentityMap : public AddressMap {
 public:
  void* ToHost(void* device_address) const override { return device_address; }
};

class DoneEvent : public Event {
 public:
  bool done() const override { return true; }
};

class CpuStream : public Stream {
 public:
  explicit CpuStream(Device* device) : device_(device) {}

  Device& device() override { return *device_; }
  void CopyIn(void* dst, const void* src, int64_t bytes) override { Copy(dst, src, bytes); }
  void CopyOut(void* dst, const void* src, int64_t bytes) override { Copy(dst, src, bytes); }
  void CopyWithin(void* dst, const void* src, int64_t bytes) override { Copy(dst, src, bytes); }
  void FillZero(void* dst, int64_t bytes) override {
    if (bytes > 0) std::memset(dst, 0, static_cast<size_t>(bytes));
  }
  void RunOnHost(std::function<void(const AddressMap&)> work) override { work(IdentityMap()); }
  std::shared_ptr<Event> Record() override { return std::make_shared<DoneEvent>(); }
  // Every event of a cpu stream is done when it is made.
  void Wait(std::shared_ptr<Event>) override {}
  absl::Status Synchronize() override { return absl::OkStatus(); }

 private:
  static void Copy(void* dst, const void* src, int64_t bytes) {
    if (bytes > 0) std::memcpy(dst, src, static_cast<size_t>(bytes));
  }
  Device* device_;
};

class CpuDevice : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::kCpu; }
  std::string name() const override { return "cpu"; }
  bool host_accessible() const override { return true; }

  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    const int64_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
    const int64_t rounded = (std::max<int64_t>(bytes, 1) + alignment - 1) / alignment * alignment;
    void* data = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(rounded));
    if (data == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cpu: the system has no ", rounded, " bytes of memory left"));
    }
    // A hint only: without huge pages the memory works as well.
    if (alignment == kHugePage) madvise(data, static_cast<size_t>(rounded), MADV_HUGEPAGE);
    return data;
  }
  void Free(void* data, int64_t) override { std::free(data); }
  std::unique_ptr<Stream> CreateStream() override { return std::make_unique<CpuStream>(this); }
};

}  // namespace

std::unique_ptr<Device> CreateCpuDevice() { return std::make_unique<CpuDevice>(); }

}  // namespace plinth
