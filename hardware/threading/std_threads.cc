#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/threading/threads.h"

namespace plinth {
namespace {
thread_local bool inside_body = false;
}  // namespace

// Workers sleep between loops; speed matters less here than being visible to sanitizers.
class Threads::Impl {
 public:
  explicit Impl(int workers) {
    for (int i = 0; i < workers; ++i) threads_.emplace_back([this, i] { Work(i + 1); });
  }
  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    start_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void Run(int64_t n, int64_t parts, const std::function<void(int64_t, int64_t)>& body) {
    {
      const std::lock_guard lock(mutex_);
      n_ = n;
      parts_ = parts;
      body_ = &body;
      pending_ = static_cast<int>(threads_.size());
      ++generation_;
    }
    start_.notify_all();
    RunPart(n, parts, 0, body);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return pending_ == 0; });
  }

 private:
  static void RunPart(int64_t n, int64_t parts, int64_t part,
                      const std::function<void(int64_t, int64_t)>& body) {
    if (part >= parts) return;
    inside_body = true;
    body(n * part / parts, n * (part + 1) / parts);
    inside_body = false;
  }

  void Work(int index) {
    uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    while (true) {
      start_.wait(lock, [&] { return stop_ || generation_ != seen; });
      if (stop_) return;
      seen = generation_;
      const int64_t n = n_, parts = parts_;
      const auto* body = body_;
      lock.unlock();
      RunPart(n, parts, index, *body);
      lock.lock();
      if (--pending_ == 0) done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable start_, done_;
  // Guarded by mutex_.
  int64_t n_ = 0, parts_ = 0;
  const std::function<void(int64_t, int64_t)>* body_ = nullptr;
  int pending_ = 0;
  uint64_t generation_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;  // last: joined in the destructor body
};

Threads::Threads(int count) : count_(count) {
  CHECK_GE(count, 1);
  impl_ = std::make_unique<Impl>(count - 1);
}
Threads::~Threads() = default;

void Threads::ParallelFor(int64_t n, int64_t grain,
                          const std::function<void(int64_t, int64_t)>& body) {
  CHECK_GE(grain, 1);
  if (n <= 0) return;
  const int64_t parts = std::clamp<int64_t>(n / grain, 1, count_);
  if (parts == 1 || inside_body) {
    body(0, n);
    return;
  }
  impl_->Run(n, parts, body);
}

void Threads::LeaveTeam() {}  // helpers belong to a Threads, and sleep

}  // namespace plinth
