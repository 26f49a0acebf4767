#include "plinth/hardware/device/sim/sim_device.h"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/device/sim/sim_memory.h"

namespace plinth {
namespace {

class SimEvent : public Event {
 public:
  bool done() const override {
    const std::lock_guard lock(mutex_);
    return done_;
  }
  void Finish() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    finished_.notify_all();
  }
  void Await() const {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [this] { return done_; });
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable finished_;
  bool done_ = false;  // guarded by mutex_
};

class SimDevice : public Device {
 public:
  explicit SimDevice(const SimOptions& options)
      : options_(options), memory_(options.memory_bytes) {}
  ~SimDevice() override { CHECK_EQ(streams_, 0) << "sim: streams outlive the device"; }

  DeviceKind kind() const override { return DeviceKind::kSim; }
  std::string name() const override { return "sim"; }
  bool host_accessible() const override { return false; }
  absl::StatusOr<void*> Allocate(int64_t bytes) override { return memory_.Allocate(bytes); }
  void Free(void* data, int64_t bytes) override { memory_.Free(data, bytes); }
  std::unique_ptr<Stream> CreateStream() override;

  // For streams.
  const SimOptions& options() const { return options_; }
  const SimMemory& memory() const { return memory_; }
  void CountStream(int change) { streams_ += change; }
  // Called by stream threads.
  absl::Status Launch(const std::function<void(const AddressMap&)>& kernel) {
    const std::lock_guard lock(kernel_mutex_);
    const int64_t launch = ++launches_;
    if (launch == options_.failing_launch) {
      return absl::InternalError(absl::StrCat("sim: kernel launch ", launch, " failed"));
    }
    std::this_thread::sleep_for(options_.launch_delay);
    kernel(memory_);
    return absl::OkStatus();
  }

 private:
  const SimOptions options_;
  SimMemory memory_;
  std::atomic<int> streams_{0};
  std::mutex kernel_mutex_;  // held while a kernel runs
  int64_t launches_ = 0;     // guarded by kernel_mutex_
};

class SimStream : public Stream {
 public:
  explicit SimStream(SimDevice* device) : device_(device) {
    device_->CountStream(1);
    thread_ = std::thread([this] { Work(); });
  }
  ~SimStream() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    queued_.notify_one();
    thread_.join();
    device_->CountStream(-1);
  }

  Device& device() override { return *device_; }

  void CopyIn(void* dst, const void* src, int64_t bytes) override {
    const char* from = static_cast<const char*>(src);
    // The caller may reuse `src` when this returns.
    auto staged = std::make_shared<std::vector<char>>(from, from + bytes);
    Enqueue([this, dst, staged, bytes] {
      Copy(ToHost(dst, bytes), staged->data(), bytes);
      SleepForCopy(bytes);
    });
  }

  void CopyOut(void* dst, const void* src, int64_t bytes) override {
    if (bytes > 0) std::memset(dst, 0xff, static_cast<size_t>(bytes));
    Enqueue([this, dst, src, bytes] {
      SleepForCopy(bytes);
      Copy(dst, ToHost(src, bytes), bytes);
    });
  }

  void CopyWithin(void* dst, const void* src, int64_t bytes) override {
    Enqueue([this, dst, src, bytes] { Copy(ToHost(dst, bytes), ToHost(src, bytes), bytes); });
  }

  void FillZero(void* dst, int64_t bytes) override {
    Enqueue([this, dst, bytes] {
      if (bytes > 0) std::memset(ToHost(dst, bytes), 0, static_cast<size_t>(bytes));
    });
  }

  void RunOnHost(std::function<void(const AddressMap&)> work) override {
    Enqueue([this, work = std::move(work)] {
      absl::Status status = device_->Launch(work);
      const std::lock_guard lock(mutex_);
      error_ = std::move(status);
    });
  }

  std::shared_ptr<Event> Record() override {
    auto event = std::make_shared<SimEvent>();
    EnqueueAlways([event] { event->Finish(); });
    return event;
  }

  void Wait(std::shared_ptr<Event> event) override {
    auto sim_event = std::dynamic_pointer_cast<SimEvent>(event);
    if (sim_event == nullptr) {
      CHECK(event->done()) << "sim: a stream can wait for events of its own kind only";
      return;
    }
    EnqueueAlways([sim_event] { sim_event->Await(); });
  }

  absl::Status Synchronize() override {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return queue_.empty() && !busy_; });
    return std::exchange(error_, absl::OkStatus());
  }

 private:
  // Work that is skipped after an error.
  void Enqueue(std::function<void()> work) {
    EnqueueAlways([this, work = std::move(work)] {
      {
        const std::lock_guard lock(mutex_);
        if (!error_.ok()) return;
      }
      work();
    });
  }
  void EnqueueAlways(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
    }
    queued_.notify_one();
  }

  // The stream's thread. Queued work is finished before it stops.
  void Work() {
    std::unique_lock lock(mutex_);
    while (true) {
      queued_.wait(lock, [this] { return stop_ || !queue_.empty(); });
      if (queue_.empty()) return;
      std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
      lock.unlock();
      work();
      work = nullptr;  // what it holds goes before Synchronize returns
      lock.lock();
      busy_ = false;
      if (queue_.empty()) idle_.notify_all();
    }
  }

  void* ToHost(const void* device_address, int64_t bytes) const {
    return device_->memory().ToHost(device_address, bytes);
  }
  static void Copy(void* dst, const void* src, int64_t bytes) {
    if (bytes > 0) std::memcpy(dst, src, static_cast<size_t>(bytes));
  }
  void SleepForCopy(int64_t bytes) const {
    const int64_t rate = device_->options().copy_bytes_per_second;
    if (rate <= 0) return;
    std::this_thread::sleep_for(
        std::chrono::duration<double>(static_cast<double>(bytes) / static_cast<double>(rate)));
  }

  SimDevice* const device_;
  std::mutex mutex_;
  std::condition_variable queued_, idle_;
  // Guarded by mutex_.
  std::deque<std::function<void()>> queue_;
  bool busy_ = false;
  bool stop_ = false;
  absl::Status error_;
  std::thread thread_;  // last: uses all of the above
};

std::unique_ptr<Stream> SimDevice::CreateStream() { return std::make_unique<SimStream>(this); }

}  // namespace

std::unique_ptr<Device> CreateSimDevice(const SimOptions& options) {
  return std::make_unique<SimDevice>(options);
}

}  // namespace plinth
