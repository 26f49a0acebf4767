#include "plinth/tools/plan/counting_device.h"

#include <functional>

namespace plinth::tools {
namespace {

class DoneEvent : public Event {
 public:
  bool done() const override { return true; }
};

class CountingStream : public Stream {
 public:
  explicit CountingStream(Device* device) : device_(*device) {}
  Device& device() override { return device_; }
  void CopyIn(void*, const void*, int64_t) override {}
  void CopyOut(void*, const void*, int64_t) override {}
  void CopyWithin(void*, const void*, int64_t) override {}
  void FillZero(void*, int64_t) override {}
  void RunOnHost(std::function<void(const AddressMap&)>) override {}
  std::shared_ptr<Event> Record() override { return std::make_shared<DoneEvent>(); }
  void Wait(std::shared_ptr<Event>) override {}
  absl::Status Synchronize() override { return absl::OkStatus(); }

 private:
  Device& device_;
};

}  // namespace

absl::StatusOr<void*> CountingDevice::Allocate(int64_t bytes) {
  void* data = reinterpret_cast<void*>(next_);
  next_ += (static_cast<uintptr_t>(bytes) / 64 + 1) * 64;
  return data;
}

std::unique_ptr<Stream> CountingDevice::CreateStream() {
  return std::make_unique<CountingStream>(this);
}

}  // namespace plinth::tools
